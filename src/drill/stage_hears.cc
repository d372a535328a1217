// What the stage hears of its workers and of pawld, and what it makes of it in the end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/boot_clock.h"
#include "drill/stage.h"
#include "drill/verdict.h"
#include "drill/worker.h"

namespace pawl::drill {
namespace {

using guard::Answer;

constexpr const char* kSomeoneElse = "someone else";
constexpr std::chrono::milliseconds kEndings{500};

}  // namespace

void Stage::hear(Role& role, const Telling& told) {
  using enum Telling::Kind;
  switch (told.kind) {
    case kReady:
      role.ready = true;
      break;
    case kFailed:
      role.trouble = Error{Code::kUnavailable, told.detail};
      break;
    case kGranted:
      hear_grant(role, told);
      break;
    case kNotGranted:
      role.trouble = Error{told.code, told.detail};
      break;
    case kReleased:
      end_belief(role, told.at);
      say(role.actor->name(), "gives the lock back");
      break;
    case kAdvanced:
      if (told.outcome.answer == Answer::kDone) {
        role.advanced_to = role.token;
      } else {
        const bool stale = told.outcome.answer == Answer::kStale;
        role.trouble = Error{stale ? Code::kIssuerBehind : Code::kUnavailable,
                             "the fence was not advanced: " + told.detail};
      }
      break;
    case kWritten:
    case kWithheld:
      hear_write(role, told);
      break;
    case kLease:
      // Of the lease before this one nothing more is wanted.
      if (told.state < LeaseState::kUncertain || told.token != role.token || !role.believes) break;
      end_belief(role, told.at);
      say(role.actor->name(),
          fmt::format("knows that it does not hold the lock any more: {}", told.detail));
      break;
    case kEnded:
      role.trouble = Error{Code::kUnavailable, told.detail};
      break;
  }
}

void Stage::hear_grant(Role& role, const Telling& told) {
  role.token = told.token;
  role.waits = false;
  role.believes = true;
  const std::string& name = role.actor->name();
  record_.beliefs.push_back({name, told.token, moment(told.at), {}});
  Ownership& owned = ownership(told.token, name, moment(told.at));
  owned.actor = name;
  owned.from = std::min(owned.from, moment(told.at));
  say(name, fmt::format("has the lock, with token {}", told.token));
}

void Stage::end_belief(Role& role, client::Instant at) {
  if (!std::exchange(role.believes, false)) return;
  for (Belief& each : record_.beliefs) {
    if (each.actor == role.actor->name() && each.token == role.token && !each.until)
      each.until = moment(at);
  }
}

void Stage::hear_write(Role& role, const Telling& told) {
  if (told.id == 0 || told.id > record_.writes.size()) return;
  Write& write = record_.writes[told.id - 1];
  write.sent = moment(told.sent);
  write.answered = moment(told.at);
  write.detail = told.detail;
  if (told.kind == Telling::Kind::kWithheld) {
    write.fate = Fate::kWithheld;
  } else if (told.outcome.passed()) {
    write.fate = Fate::kAdmitted;
  } else if (told.outcome.answer == Answer::kStale) {
    write.fate = Fate::kRefused;
  } else {
    write.detail = fmt::format("{} {}", to_text(told.outcome.answer), told.detail);
    // Neither in effect nor refused for its token: that is no answer to what the drill asks.
    if (told.outcome.answer != Answer::kUnknown)
      role.trouble =
          Error{told.outcome.answer == Answer::kBroken ? Code::kInvalid : Code::kUnavailable,
                fmt::format("{}'s write failed: {}", write.actor, write.detail)};
  }
  mark_stale(record_);
  say(write.actor, describe(write));
}

std::string Stage::describe(const Write& write) const {
  const Target& target = setting_.target;
  const bool judged_only = !target.scratch && target.statement.empty();
  const char* const in_effect = judged_only ? "it would be in effect" : "it is in effect";
  std::string text = fmt::format("writes with token {}: ", write.token);
  switch (write.fate) {
    case Fate::kAdmitted:
      return text + in_effect;
    case Fate::kLetThrough:
      return text + in_effect + ", although it is stale";
    case Fate::kRefused:
      return text + "refused";
    case Fate::kWithheld:
      return "asks its lease first, and does not write";
    case Fate::kUnknown:
      break;
  }
  return text + write.detail;
}

void Stage::hear(const wire::EventPush& event) {
  const std::string actor = event.owner.starts_with(kWorkerOwner)
                                ? event.owner.substr(kWorkerOwner.size())
                                : kSomeoneElse;
  if (event.kind == wire::EventKind::kGranted) {
    ownership(event.token.value, actor, now());
    return;
  }
  const bool ends = event.kind == wire::EventKind::kReleased ||
                    event.kind == wire::EventKind::kExpired ||
                    event.kind == wire::EventKind::kBroken;
  if (!ends) return;
  Ownership& owned = ownership(event.token.value, actor, now());
  owned.until = now();
  owned.ending = wire::to_text(event.kind);
  if (event.kind != wire::EventKind::kReleased)
    say("pawld",
        fmt::format("{}'s lease (token {}) is over: {}", owned.actor, owned.token, owned.ending));
}

Ownership& Stage::ownership(std::uint64_t token, const std::string& actor, Moment from) {
  for (Ownership& each : record_.ownerships) {
    if (each.token == token) return each;
  }
  record_.ownerships.push_back({actor, token, from});
  return record_.ownerships.back();
}

// --- the end -------------------------------------------------------------------------------------

void Stage::settle(const std::vector<std::string>& values) {
  for (Write& write : record_.writes) {
    if (write.fate == Fate::kWithheld) continue;
    const bool there = std::find(values.begin(), values.end(), write.value) != values.end();
    const bool said = write.fate == Fate::kAdmitted || write.fate == Fate::kLetThrough;
    if (there && !said) {
      write.detail += " (and yet it is in effect)";
      write.fate = Fate::kAdmitted;
    } else if (said && !there) {
      write.detail += " (but it is not in effect)";
      write.fate = Fate::kUnknown;
    }
  }
}

// What was given back is told by pawld a moment later; whoever is slower than that is left open in
// the record.
void Stage::await_endings() {
  const client::Instant limit = client::boot_now() + kEndings;
  const auto open = [&] {
    return std::any_of(
        record_.ownerships.begin(), record_.ownerships.end(),
        [](const Ownership& each) { return !each.until && each.actor != kSomeoneElse; });
  };
  while (open() && client::boot_now() < limit) turn(limit);
}

Record Stage::finish() {
  for (const auto& role : roles_) {
    if (role->actor->frozen()) wake(*role->actor);
    if (role->proxy) role->proxy->cut(Cut::kNone);
    if (role->actor->lives()) release(*role->actor);
  }
  await_endings();
  record_.length = now();
  for (Fault& each : record_.faults) {
    if (!each.until && each.kind != FaultKind::kKilled) each.until = record_.length;
  }
  std::sort(record_.ownerships.begin(), record_.ownerships.end(),
            [](const Ownership& a, const Ownership& b) { return a.from < b.from; });
  // What ended while nobody told: no later than when the next was granted the lock.
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
