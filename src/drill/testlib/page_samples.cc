#include "drill/testlib/page_samples.h"

#include <fmt/format.h>

namespace pawl::drill {
namespace {

using std::chrono::milliseconds;

DrillRecord base(std::string drill, std::string mode) {
  DrillRecord record;
  record.drill = std::move(drill);
  record.purpose = "What this drill is about.";
  record.lock = "pawl-drill/orders";
  record.guard = "postgres";
  record.guard_title = "PostgreSQL";
  record.resource = "pawl_drill_7f3a";
  record.mode = std::move(mode);
  record.pawld = "127.0.0.1:7295";
  record.version = "0.1.0";
  record.began = "2026-01-05T09:30:00Z";
  record.ttl = milliseconds(2000);
  return record;
}

void add_verdict(DrillRecord& record) {
  DrillVerdict& verdict = record.verdict;
  for (const Write& write : record.writes) {
    verdict.writes += write.fate != Fate::kWithheld ? 1 : 0;
    verdict.stale_sent += write.stale && write.fate != Fate::kWithheld ? 1 : 0;
    verdict.refused += write.fate == Fate::kRefused ? 1 : 0;
    verdict.let_through += write.fate == Fate::kLetThrough ? 1 : 0;
  }
  verdict.passed = verdict.let_through == 0 && verdict.stale_sent > 0;
  if (verdict.let_through > 0) {
    verdict.reasons.push_back({fmt::format("{} of {} stale writes took effect", verdict.let_through,
                                           verdict.stale_sent)});
  }
}

Write write(std::string worker, std::uint64_t token, int at, Fate fate) {
  const bool stale = fate != Fate::kAdmitted;
  return {std::move(worker),
          token,
          stale,
          milliseconds(at),
          milliseconds(at + 4),
          fate,
          "value",
          fate == Fate::kRefused ? "token is older than the greatest seen" : ""};
}

DrillRecord pause(std::string mode, Fate fate) {
  DrillRecord record = base("pause", std::move(mode));
  record.length = milliseconds(6400);
  record.ownerships = {{"A", 34, milliseconds(120), milliseconds(2620), "expired"},
                       {"B", 35, milliseconds(2621), milliseconds(6100), "released"}};
  record.beliefs = {{"A", 34, milliseconds(122), milliseconds(5230)},
                    {"B", 35, milliseconds(2624), milliseconds(6098)}};
  record.faults = {{FaultKind::kFrozen, "A", milliseconds(900), milliseconds(5200), "SIGSTOP"}};
  record.writes = {write("A", 34, 400, Fate::kAdmitted), write("B", 35, 3100, Fate::kAdmitted),
                   write("B", 35, 4000, Fate::kAdmitted), write("A", 34, 5210, fate)};
  record.log = {{milliseconds(120), "A", "is granted the lock, token 34"},
                {milliseconds(404), "A", "wrote “A was here”: admitted"},
                {milliseconds(900), "A", "frozen (SIGSTOP)"},
                {milliseconds(2620), "pawld", "the lease under token 34 expired"},
                {milliseconds(2621), "B", "is granted the lock, token 35"},
                {milliseconds(3104), "B", "wrote “B was here”: admitted"},
                {milliseconds(5200), "A", "resumed (SIGCONT)"},
                {milliseconds(5214), "A",
                 fate == Fate::kRefused ? "wrote “A again”: refused, stale"
                                        : "wrote “A again”: it took effect"}};
  record.verdict.noticed_late = milliseconds(2609);
  add_verdict(record);
  return record;
}

}  // namespace

DrillRecord passed_pause() {
  return pause("enforce", Fate::kRefused);
}

DrillRecord shadowed_pause() {
  return pause("shadow", Fate::kLetThrough);
}

DrillRecord unguarded_pause() {
  return pause("none", Fate::kLetThrough);
}

DrillRecord flapping(int times) {
  DrillRecord record = base("flapping", "enforce");
  record.ttl = milliseconds(500);
  int at = 100;
  for (int i = 0; i < times; ++i) {
    const std::string holder = i % 2 == 0 ? "worker-1" : "worker-2";
    const std::string former = i % 2 == 0 ? "worker-2" : "worker-1";
    const auto token = static_cast<std::uint64_t>(1041 + i);
    const int held = 700 + i * 37 % 400;
    record.ownerships.push_back(
        {holder, token, milliseconds(at), milliseconds(at + held), "expired"});
    record.beliefs.push_back(
        {holder, token, milliseconds(at + 2), milliseconds(at + held + (i % 3 == 0 ? 320 : -20))});
    record.faults.push_back(
        {FaultKind::kCut, holder, milliseconds(at + 200), milliseconds(at + held + 300)});
    record.writes.push_back(write(holder, token, at + 40, Fate::kAdmitted));
    record.writes.push_back(write(holder, token, at + 90, Fate::kAdmitted));
    if (i > 0) {
      record.writes.push_back(
          write(former, token - 1, at + 310, i % 3 == 1 ? Fate::kRefused : Fate::kWithheld));
    }
    record.log.push_back(
        {milliseconds(at), holder, fmt::format("is granted the lock, token {}", token)});
    at += held + 1;
  }
  record.length = milliseconds(at + 400);
  record.verdict.noticed_late = milliseconds(320);
  add_verdict(record);
  return record;
}

DrillRecord issuer_restart() {
  DrillRecord record = base("issuer-restart", "enforce");
  const std::uint64_t era = std::uint64_t{1} << 40;
  record.guard = "mariadb";
  record.guard_title = "MariaDB";
  record.pawld = "throw-away";
  record.length = milliseconds(9000);
  record.ownerships = {{"A", 7, milliseconds(100), milliseconds(4900), "expired"},
                       {"B", era + 1, milliseconds(5000), {}, ""}};
  record.beliefs = {{"A", 7, milliseconds(103), milliseconds(2050)},
                    {"B", era + 1, milliseconds(5004), {}}};
  record.faults = {{FaultKind::kKilled, "pawld", milliseconds(1000), {}, "SIGKILL"},
                   {FaultKind::kRestarted, "pawld", milliseconds(2900), {}, ""},
                   {FaultKind::kClockStepped, "pawld", milliseconds(2950), {}, "+1 h"},
                   {FaultKind::kKilled, "A", milliseconds(7600), {}, ""}};
  record.writes = {write("A", 7, 500, Fate::kAdmitted), write("B", era + 1, 5400, Fate::kAdmitted),
                   write("A", 7, 6000, Fate::kRefused), write("A", 7, 6900, Fate::kUnknown)};
  record.verdict.unknown = 1;
  record.verdict.noticed_late = milliseconds(-2950);
  add_verdict(record);
  return record;
}

DrillRecord idle() {
  DrillRecord record = base("partition", "enforce");
  record.length = milliseconds(800);
  record.verdict.reasons = {{"No stale write was sent, so the guard was not tested."}};
  return record;
}

DrillRecord tokenless() {
  DrillRecord record = passed_pause();
  record.scratch = false;
  record.resource = "orders";
  record.require_token = false;
  record.verdict.notes = {
      {"Writes without a token are still admitted, because require_token is off. To refuse them:",
       "pawl guard policy postgres orders --require-token on"}};
  return record;
}

DrillRecord bypassed() {
  DrillRecord record = passed_pause();
  record.scratch = false;
  record.resource = "orders";
  record.require_token = false;
  record.tables = {"orders"};
  record.statement = "UPDATE orders SET n = n + 1";
  record.ways = {
      {Way::kCall, "pawl.use()", WayFate::kRefused, "pawl: stale token 34 for orders"},
      {Way::kCarried, "SET LOCAL pawl.token.orders", WayFate::kLanded, ""},
      {Way::kNone, "no token", WayFate::kLanded, ""},
  };
  record.problems = {
      {true, false, "orders", "the trigger pawl_guard is disabled", "SELECT pawl.repair()"}};
  record.verdict.passed = false;
  record.verdict.reasons = {
      {"A stale write with SET LOCAL pawl.token.orders landed."},
      {"orders: the trigger pawl_guard is disabled. To mend it:", "SELECT pawl.repair()"}};
  return record;
}

DrillRecord hostile() {
  DrillRecord record = passed_pause();
  const std::string bad =
      "</title></style><script>alert(1)</script><img src=x onerror='alert(2)'>\"&\x1b";
  record.drill = record.lock = record.guard = record.guard_title = record.resource = record.mode =
      bad;
  record.pawld = record.version = record.began = record.purpose = bad;
  for (Ownership& ownership : record.ownerships) ownership.worker += bad, ownership.ending += bad;
  for (Belief& belief : record.beliefs) belief.worker += bad;
  for (Write& write : record.writes) write.worker += bad, write.detail = bad, write.value = bad;
  for (Fault& fault : record.faults) fault.target += bad, fault.note = bad;
  for (LogEntry& entry : record.log) entry.source = entry.text = bad;
  record.verdict.reasons = {{bad, bad}};
  record.ways = {{Way::kCall, bad, WayFate::kNotApplicable, bad},
                 {Way::kNone, bad, WayFate::kUnknown, bad}};
  record.problems = {{true, false, bad, bad, bad}};
  record.verdict.notes = {{bad, bad}};
  return record;
}

std::vector<Sample> samples() {
  return {{"passed", passed_pause()},       {"shadow", shadowed_pause()},
          {"unguarded", unguarded_pause()}, {"flapping", flapping(40)},
          {"restart", issuer_restart()},    {"idle", idle()},
          {"flapping-long", flapping(400)}, {"bypassed", bypassed()},
          {"tokenless", tokenless()},       {"hostile", hostile()}};
}

}  // namespace pawl::drill
