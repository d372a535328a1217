#include "guard/sql/session.h"

#include "base/assert.h"
#include "guard/sql/states.h"
#include "guard_contract/parse.h"

namespace pawl::guard {

Outcome SqlSession::begin(Isolation isolation) {
  token_.reset();
  return begin_at(isolation);
}

Outcome SqlSession::admit(const Admission& admission) {
  token_ = admission.token;
  if (names_.is_bare(admission.resources.front())) return {Answer::kDone, false, {}};
  // Without a token there is nothing to ask with; a trigger judges the write itself.
  if (!admission.token) return {Answer::kMissing, true, {}};
  return judge(admission);
}

Outcome SqlSession::carry(const Admission& admission) {
  PAWL_ASSERT(admission.token);
  token_ = admission.token;
  return hand_over(admission);
}

Outcome SqlSession::apply(const std::string& resource, const std::string& value) {
  return append({names_.table_of(resource), names_.layout_of(resource), names_.key_of(resource),
                 token_ ? parse_token(*token_).value_or(0) : 0, value});
}

template <class Change>
Outcome SqlSession::write_by(const Admission& admission, const Change& change) {
  Outcome outcome = begin(Isolation::kDefault);
  if (outcome.passed()) outcome = admit(admission);
  if (outcome.passed()) outcome = change();
  if (outcome.passed()) return commit();
  static_cast<void>(rollback());
  return outcome;
}

Outcome SqlSession::remove(const std::string& resource, std::uint64_t token) {
  return write_by({{resource}, std::to_string(token)},
                  [&] { return erase(names_.table_of(resource), names_.key_of(resource)); });
}

Outcome SqlSession::move(const std::string& from, const std::string& to,
                         const Admission& admission) {
  return write_by(admission, [&] {
    return rename(names_.table_of(from), names_.key_of(from), names_.key_of(to));
  });
}

Outcome SqlSession::begin_prepared(Isolation isolation, const std::string& name) {
  token_.reset();
  return begin_named(isolation, name);
}

Outcome SqlSession::begin_named(Isolation, const std::string&) {
  return {Answer::kBroken, false, "this database has no prepared transactions"};
}

std::optional<Answer> answer_of_state(std::string_view state) {
  struct Known {
    std::string_view state;
    Answer answer;
  };
  static constexpr Known kKnown[] = {
      {kStateMissing, Answer::kMissing},     {kStateStale, Answer::kStale},
      {kStateMalformed, Answer::kMalformed}, {kStateUnknownResource, Answer::kUnguarded},
      {kStateAhead, Answer::kAhead},         {kStateIsolation, Answer::kIsolation},
      {kStateWaiting, Answer::kBusy},        {kStateDone, Answer::kReplayed},
  };
  for (const Known& known : kKnown) {
    if (state == known.state) return known.answer;
  }
  return std::nullopt;
}

Outcome outcome_of_verdict(const std::string& verdict) {
  const auto known = parse_verdict(verdict);
  if (!known) return {Answer::kBroken, false, "unknown verdict \"" + verdict + "\" from the guard"};
  return {*parse_answer(verdict), *known > Verdict::kReplayed, {}};
}

}  // namespace pawl::guard
