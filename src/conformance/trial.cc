#include "conformance/trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "guard_contract/parse.h"

namespace pawl::conformance {
namespace {

// How often a write is tried again before that itself is the failure.
constexpr int kWriteTriesMax = 50;

std::string to_text(const Outcome& outcome) {
  return fmt::format("\"{}\"{}{}", to_text(outcome.answer),
                     outcome.let_through ? ", let through" : "",
                     outcome.detail.empty() ? "" : " (" + outcome.detail + ")");
}

std::string to_text(std::optional<std::uint64_t> fence) {
  return fence ? std::to_string(*fence) : "none";
}

std::uint64_t token_of(const Admission& admission) {
  return admission.token ? guard::parse_token(*admission.token).value_or(0) : 0;
}

}  // namespace

void fail(std::string why) {
  throw Failed{std::move(why)};
}

void need(const Result<void>& result, std::string_view what) {
  if (!result) fail(fmt::format("{}: {}", what, result.error().detail));
}

Admission write(const std::string& resource, std::uint64_t token) {
  return {{resource}, std::to_string(token), {}};
}

Admission write(const std::string& resource, std::uint64_t token, std::uint64_t operation) {
  return {{resource}, std::to_string(token), operation};
}

Admission write(std::vector<std::string> resources, std::uint64_t token) {
  return {std::move(resources), std::to_string(token), {}};
}

Admission write_text(const std::string& resource, std::string token) {
  return {{resource}, std::move(token), {}};
}

Admission write_without_token(const std::string& resource) {
  return {{resource}, {}, {}};
}

std::string to_text(const Admission& admission) {
  std::string text = admission.token ? fmt::format("a write with token \"{}\"", *admission.token)
                                     : std::string("a write without a token");
  if (admission.operation) text += fmt::format(" and operation {}", *admission.operation);
  return text + fmt::format(" to {}", fmt::join(admission.resources, ", "));
}

Trial::~Trial() {
  session_.reset();  // Whatever it has open would stand in the way.
  subject_.retire(made_);
}

std::string Trial::fresh(const Policy& policy) {
  return fresh(policy, 1).front();
}

std::vector<std::string> Trial::fresh(const Policy& policy, std::size_t count) {
  auto resources = need(subject_.fresh(policy, count), "fresh");
  made_.insert(made_.end(), resources.begin(), resources.end());
  if (resources.size() != count)
    fail(fmt::format("fresh: asked for {}, got {}", count, resources.size()));
  return resources;
}

std::vector<std::string> Trial::fresh_spellings(const Policy& policy) {
  auto names = need(subject_.fresh_spellings(policy), "fresh_spellings");
  made_.insert(made_.end(), names.begin(), names.end());
  if (names.size() != 2 || names.front() == names.back())
    fail("fresh_spellings: these are not two names of one resource");
  return names;
}

std::vector<Isolation> isolation_levels(const Trial& trial) {
  std::vector<Isolation> all{Isolation::kDefault};
  if (trial.has(Ability::kReadCommitted)) all.push_back(Isolation::kReadCommitted);
  if (trial.has(Ability::kRepeatableRead)) all.push_back(Isolation::kRepeatableRead);
  if (trial.has(Ability::kSerializable)) all.push_back(Isolation::kSerializable);
  return all;
}

Session& Trial::session() {
  if (!session_) session_ = open();
  return *session_;
}

std::unique_ptr<Session> Trial::open() {
  return need(subject_.open(), "open");
}

std::string Trial::next_value() {
  return fmt::format("v{}", ++values_);
}

Outcome write_once(Trial& trial, Session& session, Isolation isolation, const Admission& admission,
                   const std::string& value) {
  return guard::write_whole(session, trial.subject().abilities(), isolation, admission, value);
}

Outcome Trial::attempt(const Admission& admission) {
  return attempt(admission, next_value());
}

template <class Try>
Outcome Trial::insist(const Try& attempt, const std::string& what) {
  Outcome outcome;
  for (int i = 0; i < kWriteTriesMax; ++i) {
    outcome = attempt();
    if (outcome.answer != Answer::kAgain) return outcome;
  }
  fail(fmt::format("{} was answered \"again\" {} times: {}", what, kWriteTriesMax, outcome.detail));
}

Outcome Trial::attempt(const Admission& admission, const std::string& value) {
  return insist([&] { return write_once(*this, session(), Isolation::kDefault, admission, value); },
                to_text(admission));
}

Outcome Trial::attempt_elsewhere(const std::string& resource, const Admission& admission) {
  const std::string value = next_value();
  return insist(
      [&] { return write_elsewhere(session(), subject_.abilities(), resource, admission, value); },
      fmt::format("{}, which wrote to {},", to_text(admission), resource));
}

Outcome Trial::attempt_move(const std::string& from, const std::string& to,
                            const Admission& admission) {
  return insist([&] { return session().move(from, to, admission); },
                fmt::format("a move from {} to {}", from, to));
}

Trial::Picture Trial::picture(const std::string& resource) {
  return {effects(resource), fence(resource)};
}

Trial::Seen Trial::watch(const Admission& admission) {
  Seen seen;
  seen.value = next_value();
  for (const std::string& resource : admission.resources) seen.before.push_back(picture(resource));
  seen.outcome = attempt(admission, seen.value);
  for (const std::string& resource : admission.resources) seen.after.push_back(picture(resource));
  return seen;
}

void Trial::check_effects(const Admission& admission, const Seen& seen) {
  const std::size_t wanted = seen.outcome.passed() ? 1 : 0;
  for (std::size_t i = 0; i < admission.resources.size(); ++i) {
    const auto& before = seen.before[i].effects;
    const auto& after = seen.after[i].effects;
    if (after.size() != before.size() + wanted)
      fail(fmt::format("{} was answered {} and the log of {} went from {} to {} entries",
                       to_text(admission), to_text(seen.outcome), admission.resources[i],
                       before.size(), after.size()));
    if (wanted == 0) continue;
    if (after.back() != Effect{token_of(admission), seen.value})
      fail(fmt::format("{} was recorded as ({}, {})", to_text(admission), after.back().token,
                       after.back().value));
  }
}

void Trial::check_fences(const Admission& admission, const Seen& seen) {
  const bool admitted = seen.outcome.answer == Answer::kAdmitted && admission.token;
  for (std::size_t i = 0; i < admission.resources.size(); ++i) {
    const auto before = seen.before[i].fence;
    const auto after = seen.after[i].fence;
    const std::uint64_t token = token_of(admission);
    const auto wanted = admitted && token > before.value_or(0) ? std::optional(token) : before;
    if (after != wanted)
      fail(fmt::format("{} was answered {} and the fence of {} went from {} to {}",
                       to_text(admission), to_text(seen.outcome), admission.resources[i],
                       to_text(before), to_text(after)));
  }
}

void Trial::expect(Answer answer, const Admission& admission) {
  const Seen seen = watch(admission);
  if (seen.outcome.answer != answer || seen.outcome.let_through)
    fail(fmt::format("{} was answered {}, expected \"{}\"", to_text(admission),
                     to_text(seen.outcome), to_text(answer)));
  check_effects(admission, seen);
  check_fences(admission, seen);
}

void Trial::expect_let_through(Answer answer, const Admission& admission) {
  const Seen seen = watch(admission);
  if (seen.outcome.answer != answer || !seen.outcome.let_through)
    fail(fmt::format("{} was answered {}, expected \"{}\", let through", to_text(admission),
                     to_text(seen.outcome), to_text(answer)));
  check_let_through(admission, seen);
}

void Trial::expect_unjudged(const Admission& admission) {
  const Seen seen = watch(admission);
  if (!seen.outcome.passed())
    fail(fmt::format("{} was answered {}, and nothing may be refused here", to_text(admission),
                     to_text(seen.outcome)));
  check_let_through(admission, seen);
}

void Trial::check_let_through(const Admission& admission, const Seen& seen) {
  check_effects(admission, seen);
  for (std::size_t i = 0; i < admission.resources.size(); ++i) {
    if (seen.after[i].fence != seen.before[i].fence)
      fail(fmt::format("{} was let through and moved the fence from {} to {}", to_text(admission),
                       to_text(seen.before[i].fence), to_text(seen.after[i].fence)));
  }
}

void Trial::expect_refused(const std::vector<Answer>& answers, const Admission& admission) {
  const Seen seen = watch(admission);
  if (std::find(answers.begin(), answers.end(), seen.outcome.answer) == answers.end() ||
      seen.outcome.let_through)
    fail(fmt::format("{} was answered {}, expected \"{}\"", to_text(admission),
                     to_text(seen.outcome), to_text(answers.front())));
  check_effects(admission, seen);
  check_fences(admission, seen);
}

void Trial::expect_fence(const std::string& resource, std::optional<std::uint64_t> token) {
  if (const auto now = fence(resource); now != token)
    fail(fmt::format("the fence of {} is {}, expected {}", resource, to_text(now), to_text(token)));
}

void Trial::expect_advance(Answer answer, const std::string& resource, std::uint64_t token) {
  using namespace std::chrono_literals;
  const auto before = fence(resource);
  const Advanced advanced = session().advance(resource, token, 30s);
  if (advanced.outcome.answer != answer)
    fail(fmt::format("advance of {} to {} was answered {}, expected \"{}\"", resource, token,
                     to_text(advanced.outcome), to_text(answer)));
  if (answer == Answer::kDone && advanced.before != before)
    fail(fmt::format("advance of {} to {} returned {} as the fence before, which was {}", resource,
                     token, to_text(advanced.before), to_text(before)));
  expect_fence(resource, answer == Answer::kDone ? std::optional(token) : before);
}

std::optional<std::uint64_t> Trial::fence(const std::string& resource) {
  return need(subject_.fence(resource), "fence");
}

std::vector<Effect> Trial::effects(const std::string& resource) {
  return need(subject_.effects(resource), "effects");
}

Counts Trial::counts(const std::string& resource) {
  return need(subject_.counts(resource), "counts");
}

}  // namespace pawl::conformance
