#include "wire/verbs.h"

#include <array>

#include "base/assert.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr bool kLane = true;  // answered on the connections kept for renewals
constexpr bool kNoLane = false;
constexpr bool kEarly = true;  // answered while loading
constexpr bool kLoaded = false;

constexpr std::array<Verb, kVerbCount> kVerbs{{
    {VerbId::kAcquire, "ACQUIRE", -4, Access::kUse, "lock", kNoLane, kLoaded,
     "lock [AND lock]... TTL ms [WAIT ms [ASYNC]] [SHARED | LIMIT n] [OWNER text] [REQUEST id] "
     "[DELAY ms] "
     "[MAXHOLD ms] [META key value]...",
     "take locks, all or none, or join their queues",
     "map: lease, token, floor, slot, ttl_ms, waited_ms; null when not obtained in time; with "
     "ASYNC a map "
     "state=queued, position, and later a push",
     "ACQUIRE reports/nightly TTL 15000 WAIT 30000 OWNER batch@host:411", "0.1.0"},
    {VerbId::kCancel, "CANCEL", 2, Access::kUse, "lock", kNoLane, kLoaded, "request",
     "stop waiting for a request",
     "1 no longer waiting; 0 it was not waiting: a grant then stands, and must be released",
     "CANCEL 3q9sJ0vWl2mTz8hXc1dRkA", "0.1.0"},
    {VerbId::kRenew, "RENEW", 2, Access::kUse, "lease", kLane, kLoaded, "lease",
     "extend a lease still held", "integer: ms until it expires",
     "RENEW 5f0c1b7a9d3e4f60812233445566778f", "0.1.0"},
    {VerbId::kMRenew, "MRENEW", -2, Access::kUse, "lease", kLane, kLoaded, "lease [lease]...",
     "extend up to 1024 leases at once",
     "array of integers in the order asked: ms until it expires, -1 = over",
     "MRENEW 5f0c1b7a9d3e4f60812233445566778f 00112233445566778899aabbccddeeff", "0.1.0"},
    {VerbId::kRelease, "RELEASE", 2, Access::kUse, "lease", kLane, kLoaded, "lease",
     "end a lease now", "1 released; 0 it was already over",
     "RELEASE 5f0c1b7a9d3e4f60812233445566778f", "0.1.0"},
    {VerbId::kInspect, "INSPECT", 2, Access::kObserve, "inspect", kNoLane, kLoaded, "lock",
     "who holds a lock, until when, and who waits",
     "map: lock, state (free, held or closed; a lock that was never held is free), token (the "
     "greatest live "
     "one), holders, waiters, queue, last_token, label (what pawld knows about guards: unknown "
     "until one "
     "reports)",
     "INSPECT reports/nightly", "0.1.0"},
    {VerbId::kLocks, "LOCKS", -1, Access::kObserve, "inspect", kNoLane, kLoaded,
     "[PREFIX p] [CURSOR c] [COUNT n]",
     "the locks that are held, closed or waited for, page by page",
     "array of two: the next cursor (\"0\": the end) and an array of maps; an empty page with a "
     "cursor is "
     "normal",
     "LOCKS PREFIX reports/ COUNT 50", "0.1.0"},
    {VerbId::kHistory, "HISTORY", -2, Access::kObserve, "inspect", kNoLane, kLoaded,
     "lock [COUNT n]", "the leases that held a lock, newest first",
     "array of maps: token, owner, locks, mode, granted and ended (Unix ms), how (released, "
     "expired, broken "
     "or "
     "max_hold); at most 256 KiB, the oldest are left out; empty after a restart",
     "HISTORY reports/nightly COUNT 10", "0.1.0"},
    {VerbId::kObserve, "OBSERVE", -2, Access::kObserve, "inspect", kNoLane, kLoaded,
     "prefix [FROM id]",
     "hear what happens to the locks whose names begin with a prefix (empty: all), from now or "
     "from after an "
     "event",
     "the id to resume from; then one push per event (RESP3), or array message (RESP2)",
     "OBSERVE elections/", "0.1.0"},
    {VerbId::kUnobserve, "UNOBSERVE", 2, Access::kObserve, "inspect", kNoLane, kLoaded, "prefix",
     "stop hearing of a prefix", "1 no longer observed; 0 it was not observed",
     "UNOBSERVE elections/", "0.1.0"},
    {VerbId::kBreak, "BREAK", -6, Access::kAdmin, "operate", kNoLane, kLoaded,
     "lock TOKEN t [NOW] REASON text",
     "refuse further renewals of a lease; with NOW, hand its locks on at once (only guards protect "
     "then)",
     "1; 0 when that token does not hold that lock",
     "BREAK reports/nightly TOKEN 34 REASON \"host is gone\"", "0.1.0"},
    {VerbId::kRaise, "RAISE", 4, Access::kAdmin, "operate", kNoLane, kLoaded, "token REASON text",
     "move the token counter forward, after guards have seen more than this store",
     "integer: the new last token", "RAISE 5000 REASON \"restored from a snapshot\"", "0.1.0"},
    {VerbId::kBackup, "BACKUP", 2, Access::kBackup, "operate", kNoLane, kLoaded, "dir",
     "copy everything that is durable into a new directory on pawld's machine (absolute path), "
     "while service "
     "goes "
     "on; this connection waits for it",
     "map: dir, files, bytes, records, last_token, sequence; an error leaves nothing behind",
     "BACKUP /var/backups/pawl/2026-11-16T031700Z", "0.1.0"},
    {VerbId::kStatus, "STATUS", 1, Access::kUser, "inspect", kNoLane, kEarly, "",
     "the state of this pawld",
     "map: version, store, role, state (granting, loading, restoring or full: whether locks are "
     "granted, and "
     "if not, why), epoch, active, incarnation, last_token, oldest_live_token, locks, leases, "
     "waiters, "
     "uptime_ms, restoring_ms (after a restore: until grants begin)",
     "STATUS", "0.1.0"},
    {VerbId::kHello, "HELLO", -1, Access::kNone, "connection", kLane, kEarly,
     "[2 | 3 [AUTH user password] [SETNAME name]]", "choose RESP2 or RESP3, and authenticate",
     "map: server, version, proto, id, mode, role, modules", "HELLO 3", "0.1.0"},
    {VerbId::kAuth, "AUTH", -2, Access::kNone, "connection", kLane, kEarly, "[user] password",
     "authenticate", "OK", "AUTH batch correct-horse", "0.1.0"},
    {VerbId::kPing, "PING", -1, Access::kUser, "connection", kLane, kEarly, "[text]",
     "check that pawld answers on this connection", "PONG, or the text", "PING", "0.1.0"},
    {VerbId::kEcho, "ECHO", 2, Access::kObserve, "connection", kNoLane, kEarly, "text",
     "answer the text", "the text", "ECHO hello", "0.1.0"},
    {VerbId::kQuit, "QUIT", -1, Access::kNone, "connection", kLane, kEarly, "",
     "close this connection", "OK", "QUIT", "0.1.0"},
    {VerbId::kReset, "RESET", 1, Access::kNone, "connection", kLane, kEarly, "",
     "put the connection back to its beginning; its waits are cancelled, its observing ends",
     "RESET", "RESET", "0.1.0"},
    {VerbId::kSelect, "SELECT", 2, Access::kUser, "connection", kLane, kEarly, "0",
     "for clients that insist: there is one database, 0", "OK", "SELECT 0", "0.1.0"},
    {VerbId::kClient, "CLIENT", -2, Access::kUser, "connection", kLane, kEarly,
     "ID | GETNAME | SETNAME name | SETINFO LIB-NAME text | SETINFO LIB-VER text | INFO | LIST",
     "about this connection", "as in Redis", "CLIENT SETNAME nightly", "0.1.0"},
    {VerbId::kCommand, "COMMAND", -1, Access::kObserve, "server", kNoLane, kEarly,
     "[COUNT | DOCS [name]... | INFO [name]... | LIST]",
     "about these commands, for clients and their hints", "as in Redis 7", "COMMAND DOCS acquire",
     "0.1.0"},
    {VerbId::kInfo, "INFO", -1, Access::kObserve, "server", kLane, kEarly, "[section]...",
     "facts about this pawld, as lines of key:value", "text", "INFO", "0.1.0"},
    {VerbId::kConfig, "CONFIG", -3, Access::kObserve, "server", kNoLane, kEarly,
     "GET pattern [pattern]...", "settings that match, for clients that ask",
     "map of name to value", "CONFIG GET appendonly", "0.1.0"},
    {VerbId::kTime, "TIME", 1, Access::kObserve, "server", kNoLane, kEarly, "",
     "the wall clock, for people", "array of two: Unix seconds, and microseconds", "TIME", "0.1.0"},
    {VerbId::kHelp, "HELP", -1, Access::kObserve, "server", kNoLane, kEarly, "[command]",
     "the commands, or one of them", "array of lines", "HELP ACQUIRE", "0.1.0"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kVerbs.size(); ++i) {
    if (static_cast<std::size_t>(kVerbs[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "verb() indexes the table by VerbId");

}  // namespace

std::span<const Verb> all_verbs() {
  return kVerbs;
}

const Verb& verb(VerbId id) {
  const auto index = static_cast<std::size_t>(id);
  PAWL_ASSERT(index < kVerbs.size());
  return kVerbs[index];
}

// A scan: lengths differ mostly, and the verbs of the hot path come first. A hash would not be
// faster.
const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (is_word(name, verb.name)) return &verb;
  }
  return nullptr;
}

std::string_view to_text(Access access) {
  switch (access) {
    case Access::kNone:
      return "anyone";
    case Access::kUser:
      return "any user";
    case Access::kObserve:
      return "observe";
    case Access::kUse:
      return "use";
    case Access::kAdmin:
      return "admin";
    case Access::kBackup:
      return "backup";
  }
  return "";
}

}  // namespace pawl::wire
