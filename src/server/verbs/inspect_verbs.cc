#include "server/verbs/inspect_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace pawl::server {
namespace {

// LOCKS and HISTORY stop growing here, whatever COUNT says.
constexpr std::size_t kPageBytes = 256 * 1024;
constexpr std::size_t kPageStep = 16;

// --- INSPECT -------------------------------------------------------------------------------------

void hide_locks(const Session& session, core::LockView& view) {
  for (core::HolderView& holder : view.holders) AccessControl::hide_locks(session, holder.locks);
}

Served inspect(Command& command, const InspectRequest& request) {
  if (const Refusal refusal = AccessControl::check_lock(command.session, request.lock))
    return command.error(*refusal);
  core::LockView view = command.services.core.inspect(request.lock, command.now, request.holders);
  hide_locks(command.session, view);
  wire::ReplyWriter reply = command.reply();
  write_lock(reply, view);
  return command.done(command.services.core.last_batch());
}

constexpr std::array kInspectParameters{
    kLockInPath,
    HttpParameter{ParameterIn::kQuery, "holders", false,
                  R"({"type":"integer","minimum":1,"maximum":1000,"default":16})",
                  "how many holders to show, 1 to 1000 (default 16); holder_count has them all",
                  "HOLDERS"},
    HttpParameter{ParameterIn::kQuery, "after", false, R"({"type":"integer","minimum":1})",
                  "only holders with a greater token: that of the last holder of the page before",
                  "AFTER"}};
constexpr std::array kInspectAnswers{
    HttpAnswer{200, "Lock", "as it is now; a lock that was never held is free"}};
constexpr HttpRoute kInspectRoute{
    .method = "GET",
    .path = "/v1/locks/{name}",
    .id = "show",
    .summary = "who holds a lock, until when, and who waits",
    .parameters = kInspectParameters,
    .answers = kInspectAnswers,
    .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly",
};

// --- LOCKS ---------------------------------------------------------------------------------------

std::optional<std::uint64_t> cursor_from_text(std::string_view text) {
  std::uint64_t cursor = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, cursor);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return cursor;
}

Served list_locks(Command& command, const LocksRequest& request) {
  const Session& session = command.session;
  const core::Core& core = command.services.core;
  auto cursor = cursor_from_text(request.cursor);
  if (!cursor)
    return command.error(wire::ErrorCode::kErr,
                         "CURSOR must be 0 or the cursor of an earlier page");
  if (const Refusal refusal = AccessControl::check_prefix(session, request.prefix))
    return command.error(*refusal);
  core::NameFilter visible;
  if (AccessControl::is_limited(session))
    visible = [&session](std::string_view lock) { return reaches(session.user, lock); };
  std::string locks;
  wire::ReplyWriter writer(locks, session.protocol);
  std::size_t count = 0;
  do {
    core::LocksPage page = core.list(
        request.prefix, *cursor, std::min(request.count - count, kPageStep), command.now, visible);
    for (core::LockView& view : page.locks) {
      hide_locks(session, view);
      write_lock(writer, view);
    }
    count += page.locks.size();
    cursor = page.cursor;
    if (page.locks.empty()) break;  // The core bounds the work of one call.
  } while (*cursor != 0 && count < request.count && locks.size() < kPageBytes);
  wire::ReplyWriter reply = command.reply();
  reply.array(2);
  reply.bulk(fmt::format_int(*cursor).str());
  reply.array(count);
  reply.raw(locks);
  return command.done(core.last_batch());
}

constexpr std::array kLocksParameters{
    HttpParameter{ParameterIn::kQuery, "prefix", false, R"({"type":"string"})",
                  "only locks whose names begin with this", "PREFIX"},
    HttpParameter{ParameterIn::kQuery, "cursor", false, R"({"type":"string","pattern":"^[0-9]*$"})",
                  "of the page before; an empty page with a cursor is normal", "CURSOR"},
    kPageSize};
constexpr std::array kLocksAnswers{
    HttpAnswer{200, "Page", "a page; the last one's cursor is \"0\""}};
constexpr HttpRoute kLocksRoute{
    .method = "GET",
    .path = "/v1/locks",
    .id = "list",
    .summary = "the locks that are held, closed or waited for, page by page",
    .parameters = kLocksParameters,
    .answers = kLocksAnswers,
    .example = "'http://127.0.0.1:7296/v1/locks?prefix=reports/'",
};

// --- HISTORY -------------------------------------------------------------------------------------

Served show_history(Command& command, const HistoryRequest& request) {
  if (const Refusal refusal = AccessControl::check_lock(command.session, request.lock))
    return command.error(*refusal);
  const core::Core& core = command.services.core;
  std::string epochs;
  wire::ReplyWriter writer(epochs, command.session.protocol);
  std::size_t count = 0;
  for (core::EpochView& epoch : core.history(request.lock, request.count)) {
    if (epochs.size() >= kPageBytes) break;  // The oldest are left out.
    AccessControl::hide_locks(command.session, epoch.locks);
    write_epoch(writer, epoch);
    ++count;
  }
  wire::ReplyWriter reply = command.reply();
  reply.array(count);
  reply.raw(epochs);
  return command.done(core.last_batch());
}

constexpr std::array kHistoryParameters{kLockInPath, kPageSize};
constexpr std::array kHistoryAnswers{
    HttpAnswer{200, "History", "what is remembered, which may be nothing"}};
constexpr HttpRoute kHistoryRoute{
    .method = "GET",
    .path = "/v1/locks/{name}/history",
    .id = "history",
    .summary = "the leases that held a lock before, newest first; forgotten when pawld restarts",
    .parameters = kHistoryParameters,
    .answers = kHistoryAnswers,
    .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly/history",
};

// --- STATUS --------------------------------------------------------------------------------------

Served show_status(Command& command, NoArguments) {
  wire::ReplyWriter reply = command.reply();
  write_status(reply, command.services.status(command.now));
  return command.done(command.services.core.last_batch());
}

constexpr std::array kStatusAnswers{HttpAnswer{200, "Status", "as it is now"}};
constexpr HttpRoute kStatusRoute{
    .method = "GET",
    .path = "/v1/status",
    .id = "status",
    .summary = "the state of this pawld",
    .answers = kStatusAnswers,
    .example = "http://127.0.0.1:7296/v1/status",
};

}  // namespace

InspectRequest parse_inspect(wire::ArgReader& in) {
  InspectRequest inspect{.lock = in.lock(), .holders = {}};
  while (in.more()) {
    if (in.option("HOLDERS")) {
      inspect.holders.count = in.number("HOLDERS", {1, limits::kCountMax});
    } else if (in.option("AFTER")) {
      inspect.holders.after = in.token("AFTER");
    } else {
      in.refuse_rest();
    }
  }
  return inspect;
}

LocksRequest parse_locks(wire::ArgReader& in) {
  LocksRequest locks;
  while (in.more()) {
    if (in.option("PREFIX")) {
      locks.prefix = in.text("PREFIX", {0, limits::kLockNameMax});
    } else if (in.option("CURSOR")) {
      locks.cursor = in.text("CURSOR", {1, limits::kCursorMax});
    } else if (in.option("COUNT")) {
      locks.count = in.number("COUNT", {1, limits::kCountMax});
    } else {
      in.refuse_rest();
    }
  }
  return locks;
}

HistoryRequest parse_history(wire::ArgReader& in) {
  HistoryRequest history{.lock = in.lock()};
  while (in.more()) {
    if (in.option("COUNT")) {
      history.count = in.number("COUNT", {1, limits::kCountMax});
    } else {
      in.refuse_rest();
    }
  }
  return history;
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kInspect{
    .name = "INSPECT",
    .arity = -2,
    .access = wire::Access::kObserve,
    .group = "inspect",
    .usage = "lock [HOLDERS n] [AFTER token]",
    .summary = "who holds a lock, until when, and who waits",
    .reply =
        "map: lock, state (free, held or closed; a lock that was never held is free), token "
        "(the greatest live one), holder_count, holders (the first n of them, 16 unless HOLDERS "
        "says another number, up to 1000; after a token: those with a greater one), waiters, queue "
        "(the first 16), last_token, label (what pawld knows about guards: unknown until one "
        "reports)",
    .example = "INSPECT reports/nightly",
    .handler = kHandler<parse_inspect, inspect>,
    .http = &kInspectRoute,
};

constinit const Verb kLocks{
    .name = "LOCKS",
    .arity = -1,
    .access = wire::Access::kObserve,
    .group = "inspect",
    .usage = "[PREFIX p] [CURSOR c] [COUNT n]",
    .summary = "the locks that are held, closed or waited for, page by page",
    .reply =
        "array of two: the next cursor (\"0\": the end) and an array of maps; an empty page "
        "with a cursor is normal",
    .example = "LOCKS PREFIX reports/ COUNT 50",
    .handler = kHandler<parse_locks, list_locks>,
    .http = &kLocksRoute,
};

constinit const Verb kHistory{
    .name = "HISTORY",
    .arity = -2,
    .access = wire::Access::kObserve,
    .group = "inspect",
    .usage = "lock [COUNT n]",
    .summary = "the leases that held a lock, newest first",
    .reply =
        "array of maps: token, owner, locks, mode, granted and ended (Unix ms), how (released, "
        "expired, broken or max_hold); at most 256 KiB, the oldest are left out; empty after a "
        "restart",
    .example = "HISTORY reports/nightly COUNT 10",
    .handler = kHandler<parse_history, show_history>,
    .http = &kHistoryRoute,
};

constinit const Verb kStatus{
    .name = "STATUS",
    .arity = 1,
    .access = wire::Access::kUser,
    .group = "inspect",
    .while_loading = true,
    .summary = "the state of this pawld",
    .reply =
        "map: version, store, role, state (granting, loading, restoring, full or standby: whether "
        "locks are granted, and if not, why), epoch, active, incarnation, last_token, "
        "oldest_live_token, locks, leases, waiters, uptime_ms, restoring_ms (after a restore: "
        "until grants begin), limits (a map: leases, lease_bytes, waiters, observers, "
        "history_bytes "
        "and output_bytes, each with use and limit, and where users have limits greatest_user and "
        "per_user); with --store etcd also cluster (a map: name, nodes, each with address, role, "
        "pid "
        "and self, and etcd, each with endpoint, usable, leader, version and problem)",
    .example = "STATUS",
    .handler = kHandler<parse_nothing, show_status>,
    .http = &kStatusRoute,
};

}  // namespace pawl::server
