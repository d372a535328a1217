#include "drill/ways.h"

#include <string>
#include <utility>

#include "guard/session.h"

namespace pawl::drill {
namespace {

using guard::Ability;
using guard::Answer;
using guard::Isolation;
using guard::Outcome;
using guard::Session;

// What a write to a scratch resource appends, and takes back.
constexpr const char* kValue = "stale";

WayFate fate_of(const Outcome& outcome) {
  if (outcome.passed()) return WayFate::kLanded;
  const bool refused = outcome.answer == Answer::kStale || outcome.answer == Answer::kMissing;
  return refused ? WayFate::kRefused : WayFate::kUnknown;
}

class WayTrial {
 public:
  WayTrial(const Target& target, std::uint64_t token)
      : target_(target),
        admission_{{target.resource}, std::to_string(token), {}},
        token_(token),
        token_in_statement_(target.statement.find(kTokenMark) != std::string::npos) {}

  Result<TriedWay> run(Way way) {
    auto opened = open_session(target_);
    if (!opened) return opened.error();
    Session& session = *opened->session;
    TriedWay tried{.way = way, .words = words_of(session, way)};
    if (!opened->abilities.has(Ability::kTransactions)) return judge_only(session, tried);
    if (way != Way::kCall && !has_write())
      return not_applicable(tried, "no statement was given (--write)");
    if (tried.words.empty()) return not_applicable(tried, "this guard has no such way");
    Outcome outcome;
    for (int i = 0; i < kAttempts; ++i) {
      outcome = write_and_roll_back(session, way);
      if (outcome.answer != Answer::kAgain) break;
    }
    tried.fate = fate_of(outcome);
    tried.detail = outcome.detail;
    return tried;
  }

 private:
  static TriedWay not_applicable(TriedWay tried, std::string why) {
    tried.fate = WayFate::kNotApplicable;
    tried.detail = std::move(why);
    return tried;
  }

  // Without transactions a write could not be taken back.
  TriedWay judge_only(Session& session, TriedWay tried) {
    if (tried.way != Way::kCall)
      return not_applicable(std::move(tried), "a write could not be rolled back");
    const Outcome outcome = session.check(target_.resource, token_).outcome;
    tried.words = "the guard's check";
    tried.fate = fate_of(outcome);
    tried.detail = outcome.detail;
    return tried;
  }

  [[nodiscard]] bool has_write() const { return target_.scratch || !target_.statement.empty(); }

  std::string words_of(Session& session, Way way) {
    switch (way) {
      case Way::kCall:
        return session.admit_words();
      case Way::kCarried:
        return token_in_statement_ ? std::string(kTokenMark) + " in the statement"
                                   : session.carry_words(target_.resource);
      case Way::kNone:
        break;
    }
    return "no token";
  }

  Outcome write_and_roll_back(Session& session, Way way) {
    Outcome outcome = session.begin(Isolation::kDefault);
    if (outcome.passed()) outcome = give_token(session, way);
    if (outcome.passed() && has_write()) outcome = write(session, way);
    static_cast<void>(session.rollback());
    return outcome;
  }

  Outcome give_token(Session& session, Way way) {
    if (way == Way::kCall) return session.admit(admission_);
    if (way == Way::kCarried && !token_in_statement_) return session.carry(admission_);
    return {Answer::kDone};
  }

  Outcome write(Session& session, Way way) {
    if (target_.scratch) return session.apply(target_.resource, kValue);
    return execute(session, target_, way == Way::kNone ? std::nullopt : std::optional(token_));
  }

  const Target& target_;
  const guard::Admission admission_;
  const std::uint64_t token_;
  const bool token_in_statement_;
};

}  // namespace

Result<std::vector<TriedWay>> try_ways(const Target& target, std::uint64_t token) {
  WayTrial trial(target, token);
  std::vector<TriedWay> ways;
  for (const Way way : {Way::kCall, Way::kCarried, Way::kNone}) {
    auto tried = trial.run(way);
    if (!tried) return tried.error();
    ways.push_back(*std::move(tried));
  }
  return ways;
}

}  // namespace pawl::drill
