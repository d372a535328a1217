// How a Scenario turns the events of its workers and of pawld into the record.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/boot_clock.h"
#include "drill/scenario.h"
#include "drill/verdict.h"
#include "drill/worker.h"

namespace pawl::drill {
namespace {

using guard::Answer;

constexpr const char* kSomeoneElse = "someone else";
constexpr std::chrono::milliseconds kEndingsLimit{500};

// kInvalid: the statement is wrong. It fails, or changes what its token was not given for.
Code code_of_failure(Answer answer) {
  return answer == Answer::kBroken || answer == Answer::kMissing ? Code::kInvalid
                                                                 : Code::kUnavailable;
}

std::string describe_way(const TriedWay& tried) {
  const std::string fate = tried.fate == WayFate::kRefused  ? "refused"
                           : tried.fate == WayFate::kLanded ? "it lands"
                                                            : tried.detail;
  return fmt::format("the same write with {}, rolled back: {}", tried.words, fate);
}

}  // namespace

void Scenario::on_event(WorkerState& state, const WorkerEvent& event) {
  using enum WorkerEvent::Kind;
  switch (event.kind) {
    case kReady:
      state.ready = true;
      break;
    case kFailed:
      state.error = Error{Code::kUnavailable, event.detail};
      break;
    case kGranted:
      on_granted(state, event);
      break;
    case kNotGranted:
      state.error = Error{event.code, event.detail};
      break;
    case kReleased:
      end_belief(state, event.at);
      log(state.process->name(), "releases the lock");
      break;
    case kAdvanced:
      if (event.outcome.answer == Answer::kDone) {
        state.advanced_to = state.token;
      } else {
        const bool stale = event.outcome.answer == Answer::kStale;
        state.error = Error{stale ? Code::kIssuerBehind : Code::kUnavailable,
                            "the fence was not advanced: " + event.detail};
      }
      break;
    case kWritten:
    case kWithheld:
      on_write_result(state, event);
      break;
    case kTried:
      record_.ways = event.ways;
      for (const TriedWay& each : event.ways) {
        if (each.fate != WayFate::kNotApplicable) log(state.process->name(), describe_way(each));
      }
      break;
    case kLease:
      // Only the loss of the current lease counts.
      if (event.state < LeaseState::kUncertain || event.token != state.token ||
          !state.believes_held)
        break;
      end_belief(state, event.at);
      log(state.process->name(),
          fmt::format("learns that it does not hold the lock any more: {}", event.detail));
      break;
    case kEnded:
      state.error = Error{Code::kUnavailable, event.detail};
      break;
  }
}

void Scenario::on_granted(WorkerState& state, const WorkerEvent& event) {
  state.token = event.token;
  state.waiting = false;
  state.believes_held = true;
  const std::string& name = state.process->name();
  record_.beliefs.push_back({name, event.token, moment(event.at), {}});
  Ownership& owned = ownership(event.token, name, moment(event.at));
  owned.worker = name;
  owned.from = std::min(owned.from, moment(event.at));
  owned.token_before = std::max(owned.token_before, state.token_before);
  log(name, fmt::format("is granted the lock, token {}", event.token));
}

void Scenario::end_belief(WorkerState& state, client::Instant at) {
  if (!std::exchange(state.believes_held, false)) return;
  for (Belief& each : record_.beliefs) {
    if (each.worker == state.process->name() && each.token == state.token && !each.until)
      each.until = moment(at);
  }
}

void Scenario::on_write_result(WorkerState& state, const WorkerEvent& event) {
  if (event.id == 0 || event.id > record_.writes.size()) return;
  Write& write = record_.writes[event.id - 1];
  write.sent = moment(event.sent);
  write.answered = moment(event.at);
  write.detail = event.detail;
  write.rows = event.outcome.rows;
  if (event.kind == WorkerEvent::Kind::kWithheld) {
    write.fate = Fate::kWithheld;
  } else if (event.outcome.passed()) {
    write.fate = Fate::kAdmitted;
  } else if (event.outcome.answer == Answer::kStale) {
    write.fate = Fate::kRefused;
  } else {
    write.detail = fmt::format("{} {}", to_text(event.outcome.answer), event.detail);
    // Neither in effect nor refused for its token: the drill cannot be judged.
    if (event.outcome.answer != Answer::kUnknown)
      state.error = Error{code_of_failure(event.outcome.answer),
                          fmt::format("{}'s write failed: {}", write.worker, write.detail)};
  }
  mark_stale(record_);
  log(write.worker, describe(write));
}

std::string Scenario::describe(const Write& write) const {
  const char* const in_effect = config_.target.scratch ? "takes effect" : "would take effect";
  std::string text = fmt::format("writes with token {}: ", write.token);
  switch (write.fate) {
    case Fate::kAdmitted:
      return text + in_effect;
    case Fate::kLetThrough:
      return text + in_effect + ", although its token is stale";
    case Fate::kRefused:
      return text + "refused";
    case Fate::kWithheld:
      return "checks its lease first, and does not write";
    case Fate::kUnknown:
      break;
  }
  return text + write.detail;
}

void Scenario::on_event(const wire::EventPush& event) {
  const std::string worker = event.owner.starts_with(kWorkerOwner)
                                 ? event.owner.substr(kWorkerOwner.size())
                                 : kSomeoneElse;
  if (event.kind == wire::EventKind::kGranted) {
    Ownership& owned = ownership(event.token.value, worker, now());
    // pawld reports grants in their order. A token that was granted, ended and is granted again was
    // issued twice.
    owned.token_before =
        std::max(owned.token_before, owned.until ? owned.token : last_reported_token_);
    last_reported_token_ = owned.token;
    return;
  }
  const bool ends = event.kind == wire::EventKind::kReleased ||
                    event.kind == wire::EventKind::kExpired ||
                    event.kind == wire::EventKind::kBroken;
  if (!ends) return;
  Ownership& owned = ownership(event.token.value, worker, now());
  owned.until = now();
  owned.ending = wire::to_text(event.kind);
  if (event.kind != wire::EventKind::kReleased)
    log("pawld",
        fmt::format("{}'s lease (token {}) is over: {}", owned.worker, owned.token, owned.ending));
}

Ownership& Scenario::ownership(std::uint64_t token, const std::string& worker, Moment from) {
  for (Ownership& each : record_.ownerships) {
    if (each.token == token) return each;
  }
  record_.ownerships.push_back({worker, token, from});
  return record_.ownerships.back();
}

// --- the end -------------------------------------------------------------------------------------

void Scenario::reconcile(const std::vector<std::string>& values) {
  for (Write& write : record_.writes) {
    if (write.fate == Fate::kWithheld) continue;
    const bool there = std::find(values.begin(), values.end(), write.value) != values.end();
    const bool reported = write.fate == Fate::kAdmitted || write.fate == Fate::kLetThrough;
    if (there && !reported) {
      write.detail += " (but it is in effect)";
      write.fate = Fate::kAdmitted;
    } else if (reported && !there) {
      write.detail += " (but it is not in effect)";
      write.fate = Fate::kUnknown;
    }
  }
}

void Scenario::add_problems(const Result<std::vector<GuardProblem>>& problems) {
  if (problems) {
    record_.problems = *problems;
  } else {
    record_.problems_unread = problems.error().detail;
  }
}

// pawld reports a release a moment after the worker does. Leases that it has not reported by then
// stay open in the record.
void Scenario::await_endings() {
  const client::Instant limit = client::boot_now() + kEndingsLimit;
  const auto open = [&] {
    return std::any_of(
        record_.ownerships.begin(), record_.ownerships.end(),
        [](const Ownership& each) { return !each.until && each.worker != kSomeoneElse; });
  };
  while (open() && client::boot_now() < limit) poll_once(limit);
}

DrillRecord Scenario::finish() {
  for (const auto& state : workers_) {
    if (state->process->frozen()) resume(*state->process);
    if (state->proxy) state->proxy->cut(Cut::kNone);
    if (state->process->running()) release(*state->process);
  }
  await_endings();
  record_.length = now();
  for (Fault& each : record_.faults) {
    if (!each.until && each.kind != FaultKind::kKilled) each.until = record_.length;
  }
  std::sort(record_.ownerships.begin(), record_.ownerships.end(),
            [](const Ownership& a, const Ownership& b) { return a.from < b.from; });
  // A lease without an end event ended when the next one was granted, at the latest.
  for (std::size_t i = 0; i + 1 < record_.ownerships.size(); ++i) {
    Ownership& each = record_.ownerships[i];
    if (!each.until) each.until = record_.ownerships[i + 1].from;
    if (each.ending.empty()) each.ending = "ended";
  }
  mark_stale(record_);
  record_.verdict = judge(record_);
  return record_;
}

}  // namespace pawl::drill
