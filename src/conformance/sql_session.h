// One connection to a database as a Session: what is the same in all of them. The rest, which is
// SQL and how it is refused, each database adds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "conformance/sql_place.h"
#include "conformance/subject.h"

namespace pawl::conformance {

class SqlSession : public Session {
 public:
  explicit SqlSession(Place place) : place_(std::move(place)) {}

  Outcome begin(Isolation isolation) final;
  Outcome admit(const Admission& admission) final;
  Outcome apply(const std::string& resource, const std::string& value) final;
  Outcome write(const Admission& admission, const std::string& value) final;
  Outcome remove(const std::string& resource, std::uint64_t token) final;

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
  // With a token, of resources that are under guard.
  virtual Outcome judge(const Admission& admission) = 0;
  virtual Outcome append(const Line& line) = 0;
  virtual Outcome erase(const std::string& table, const std::string& key) = 0;

  [[nodiscard]] const Place& place() const { return place_; }

 private:
  const Place place_;
  std::optional<std::string> token_;  // of the open transaction
};

// A verdict that came as a value: the writer may go on.
[[nodiscard]] Outcome to_outcome(const std::string& verdict);
// What the guard says with a SQLSTATE of its own; nothing: it is none of those.
[[nodiscard]] std::optional<Answer> answer_of_state(std::string_view state);

}  // namespace pawl::conformance
