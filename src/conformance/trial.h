// One case under way: clean resources, sessions, and sentences that end the case when they are
// false.
//
//   void a_smaller_token_is_stale(Trial& trial) {
//     const std::string resource = trial.fresh();
//     trial.expect(Answer::kAdmitted, write(resource, 34));
//     trial.expect(Answer::kStale, write(resource, 33));  // no effect, and the fence where it was
//   }
//
// A false sentence throws Failed, which the runner catches: a case reads as a story, not as a
// ladder of ifs.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "conformance/subject.h"

namespace pawl::conformance {

struct Failed {
  std::string why;
};
[[noreturn]] void fail(std::string why);

// The value of a call without which the case cannot go on.
template <class T>
T need(Result<T> result, std::string_view what) {
  if (!result) fail(std::string(what) + ": " + result.error().detail);
  return *std::move(result);
}
void need(const Result<void>& result, std::string_view what);

[[nodiscard]] Admission write(const std::string& resource, std::uint64_t token);
[[nodiscard]] Admission write(const std::string& resource, std::uint64_t token,
                              std::uint64_t operation);
[[nodiscard]] Admission write(std::vector<std::string> resources, std::uint64_t token);
// Whatever it is: "007", "", "1e3".
[[nodiscard]] Admission write_text(const std::string& resource, std::string token);
[[nodiscard]] Admission write_without_token(const std::string& resource);
[[nodiscard]] std::string to_text(const Admission& admission);

class Trial {
 public:
  // `rounds`: how often each racer of a race tries.
  Trial(Subject& subject, std::uint64_t seed, std::uint64_t rounds)
      : subject_(subject), random_(seed), rounds_(rounds) {}
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  [[nodiscard]] Subject& subject() { return subject_; }
  [[nodiscard]] SeededRandom& random() { return random_; }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }
  [[nodiscard]] bool has(Ability ability) const { return subject_.abilities().has(ability); }

  [[nodiscard]] std::string fresh(const Policy& policy = {});
  [[nodiscard]] std::vector<std::string> fresh(const Policy& policy, std::size_t count);
  // Two names of one new resource.
  [[nodiscard]] std::vector<std::string> fresh_spellings(const Policy& policy);
  // The session that expect() and attempt() use; another one when a case needs two.
  [[nodiscard]] Session& session();
  // The next one is new: a program that has never used a token. A session that has used one may be
  // refused what it then writes without.
  void end_session() { session_.reset(); }
  [[nodiscard]] std::unique_ptr<Session> open();
  // No two are alike. Any thread.
  [[nodiscard]] std::string next_value();

  // A whole write, again while the subject says that it may pass then.
  Outcome attempt(const Admission& admission);
  Outcome attempt(const Admission& admission, const std::string& value);
  // A write that must be answered so; it must have exactly the effect that this answer means, and
  // only an admitted token may have moved the fence.
  void expect(Answer answer, const Admission& admission);
  // The same of what would be refused in another mode: it must be in effect all the same, and not
  // move the fence.
  void expect_let_through(Answer answer, const Admission& admission);
  // The same in mode observe, which may return the verdict or not.
  void expect_unjudged(const Admission& admission);
  // A whole write to `resource` under a token for others, again while it may pass then.
  Outcome attempt_elsewhere(const std::string& resource, const Admission& admission);
  // A move from one to the other, again while it may pass then.
  Outcome attempt_move(const std::string& from, const std::string& to, const Admission& admission);
  // Refused, by whichever of these names fits.
  void expect_refused(const std::vector<Answer>& answers, const Admission& admission);

  void expect_fence(const std::string& resource, std::optional<std::uint64_t> token);
  void expect_advance(Answer answer, const std::string& resource, std::uint64_t token);

  [[nodiscard]] std::optional<std::uint64_t> fence(const std::string& resource);
  [[nodiscard]] std::vector<Effect> effects(const std::string& resource);
  [[nodiscard]] Counts counts(const std::string& resource);

  struct Picture {  // of one resource
    std::vector<Effect> effects;
    std::optional<std::uint64_t> fence;

    bool operator==(const Picture&) const = default;
  };
  [[nodiscard]] Picture picture(const std::string& resource);

 private:
  struct Seen {
    Outcome outcome;
    std::string value;
    std::vector<Picture> before;
    std::vector<Picture> after;
  };
  // Tries until the answer is another than "again".
  template <class Try>
  Outcome insist(const Try& attempt, const std::string& what);
  Seen watch(const Admission& admission);
  static void check_effects(const Admission& admission, const Seen& seen);
  static void check_let_through(const Admission& admission, const Seen& seen);
  static void check_fences(const Admission& admission, const Seen& seen);

  Subject& subject_;
  SeededRandom random_;
  const std::uint64_t rounds_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> made_;  // by fresh()
  std::atomic<std::uint64_t> values_{0};
};

// All at which this guard's transactions can be begun; the default is always one of them.
[[nodiscard]] std::vector<Isolation> isolation_levels(const Trial& trial);

// One whole write on that session: in steps where there are transactions, else in one. Rolls back
// what did not pass.
Outcome write_once(Trial& trial, Session& session, Isolation isolation, const Admission& admission,
                   const std::string& value);
}  // namespace pawl::conformance
