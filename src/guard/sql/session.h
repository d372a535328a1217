// One connection to a database as a Session: what is the same in all of them. Each database adds
// its SQL, and how it refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "guard/session.h"
#include "guard/sql/scratch_names.h"

namespace pawl::guard {

class SqlSession : public Session {
 public:
  explicit SqlSession(ScratchNames names) : names_(std::move(names)) {}

  Outcome begin(Isolation isolation) final;
  Outcome admit(const Admission& admission) final;
  Outcome carry(const Admission& admission) final;
  Outcome apply(const std::string& resource, const std::string& value) final;
  Outcome remove(const std::string& resource, std::uint64_t token) final;
  Outcome move(const std::string& from, const std::string& to, const Admission& admission) final;
  Outcome begin_prepared(Isolation isolation, const std::string& name) final;

 protected:
  // A line of a resource's log, and where it goes.
  struct Line {
    std::string table;
    Layout layout;
    std::string key;
    std::uint64_t token;
    std::string value;
  };

  virtual Outcome begin_at(Isolation isolation) = 0;
  // With kPrepared.
  virtual Outcome begin_named(Isolation isolation, const std::string& name);
  // With a token, of resources that are under guard.
  virtual Outcome judge(const Admission& admission) = 0;
  // The same without asking for a verdict: carry().
  virtual Outcome hand_over(const Admission& admission) = 0;
  virtual Outcome append(const Line& line) = 0;
  virtual Outcome erase(const std::string& table, const std::string& key) = 0;
  // Gives the rows of one key another.
  virtual Outcome rename(const std::string& table, const std::string& from,
                         const std::string& to) = 0;

  [[nodiscard]] const ScratchNames& names() const { return names_; }

 private:
  // A whole write: `change` returns what came of the step between admit() and commit().
  template <class Change>
  Outcome write_by(const Admission& admission, const Change& change);

  const ScratchNames names_;
  std::optional<std::string> token_;  // of the open transaction
};

// The refusal that a SQLSTATE of the guard stands for. Nothing: it is none of those above.
[[nodiscard]] std::optional<Answer> answer_of_state(std::string_view state);
// A verdict that use() or admit() returned as a value: the writer may go on.
[[nodiscard]] Outcome outcome_of_verdict(const std::string& verdict);

}  // namespace pawl::guard
