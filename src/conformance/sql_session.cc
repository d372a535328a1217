#include "conformance/sql_session.h"

#include "guard/states.h"
#include "guard/words.h"

namespace pawl::conformance {

Outcome SqlSession::begin(Isolation isolation) {
  token_.reset();
  return begin_at(isolation);
}

Outcome SqlSession::admit(const Admission& admission) {
  token_ = admission.token;
  if (place_.is_bare(admission.resources.front())) return {Answer::kDone};
  // What no token was used for, a trigger judges when it comes to it.
  if (!admission.token) return {Answer::kMissing, true};
  return judge(admission);
}

Outcome SqlSession::apply(const std::string& resource, const std::string& value) {
  return append({place_.table_of(resource), place_.layout_of(resource), place_.key_of(resource),
                 token_ ? guard::parse_token(*token_).value_or(0) : 0, value});
}

Outcome SqlSession::write(const Admission&, const std::string&) {
  return {Answer::kBroken, false, "a database writes in transactions"};
}

Outcome SqlSession::remove(const std::string& resource, std::uint64_t token) {
  Outcome outcome = begin(Isolation::kDefault);
  if (outcome.passed()) outcome = admit({{resource}, std::to_string(token), {}});
  if (outcome.passed()) outcome = erase(place_.table_of(resource), place_.key_of(resource));
  if (outcome.passed()) return commit();
  static_cast<void>(rollback());
  return outcome;
}

Outcome to_outcome(const std::string& word) {
  const auto verdict = guard::parse_verdict(word);
  if (!verdict) return {Answer::kBroken, false, "the guard's verdict is \"" + word + "\""};
  return {*parse_answer(word), *verdict > Verdict::kReplayed};
}

std::optional<Answer> answer_of_state(std::string_view state) {
  struct Known {
    std::string_view state;
    Answer answer;
  };
  static constexpr Known kKnown[] = {
      {guard::kStateMissing, Answer::kMissing},
      {guard::kStateStale, Answer::kStale},
      {guard::kStateMalformed, Answer::kMalformed},
      {guard::kStateUnknownResource, Answer::kUnguarded},
      {guard::kStateAhead, Answer::kAhead},
      {guard::kStateIsolation, Answer::kIsolation},
      {guard::kStateWaiting, Answer::kBusy},
      {guard::kStateDone, Answer::kReplayed},
  };
  for (const Known& known : kKnown) {
    if (state == known.state) return known.answer;
  }
  return std::nullopt;
}

}  // namespace pawl::conformance
