// Acquire, renew, release.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/engine.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

using http::Problem;

// --- Acquire -------------------------------------------------------------------------------------

struct Wish {
  std::vector<std::string> command;
  std::vector<std::string> locks;
};

bool is_request_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return text.size() >= limits::kRequestMin && text.size() <= limits::kRequestMax &&
         std::all_of(text.begin(), text.end(), fits);
}

// Empty when there is none. Quotes may surround it: that is how the header is written where it is a
// structured field.
Result<std::string> idempotency_key(const http::Request& request, bool waits) {
  constexpr std::string_view kHeader = "Idempotency-Key";
  if (request.count(kHeader) == 0) {
    if (!waits) return std::string();
    return Error{
        Code::kInvalid,
        "wait_ms needs the header Idempotency-Key: without it a retry would queue a second time"};
  }
  std::string_view key = request.header(kHeader).value_or("");
  if (key.size() >= 2 && key.starts_with('"') && key.ends_with('"'))
    key = key.substr(1, key.size() - 2);
  if (is_request_id(key)) return std::string(key);
  return Error{
      Code::kInvalid,
      fmt::format(
          "Idempotency-Key must be given once, {} to {} of A-Z a-z 0-9 _ -; use at least 128 "
          "random bits",
          limits::kRequestMin, limits::kRequestMax)};
}

std::uint64_t count_of(Millis limit) {
  return static_cast<std::uint64_t>(limit.count());
}

void append_locks(Wish& wish, Body& body) {
  wish.locks = body.texts("locks");
  if (wish.locks.empty() || wish.locks.size() > limits::kLocksPerLease)
    body.refuse(fmt::format("locks must name 1 to {} locks", limits::kLocksPerLease));
  for (std::size_t i = 0; i < wish.locks.size(); ++i) {
    const std::string& lock = wish.locks[i];
    if (auto wrong = wrong_text(fmt::format("locks[{}]", i), lock, {1, limits::kLockNameMax}))
      body.refuse(std::move(*wrong));
    if (std::find(wish.locks.begin(), wish.locks.begin() + static_cast<std::ptrdiff_t>(i), lock) !=
        wish.locks.begin() + static_cast<std::ptrdiff_t>(i))
      body.refuse(fmt::format("locks names {} twice", wire::shown(lock)));
    if (i > 0) wish.command.emplace_back("AND");
    wish.command.push_back(lock);
  }
}

void append_number(Wish& wish, std::string_view option, std::optional<std::uint64_t> value,
                   std::uint64_t by_default) {
  const std::uint64_t number = value.value_or(by_default);
  if (number == by_default) return;
  wish.command.insert(wish.command.end(), {std::string(option), std::to_string(number)});
}

// `limit` 1 is an exclusive lock, as without it.
void append_mode(Wish& wish, Body& body) {
  const bool shared = body.boolean("shared").value_or(false);
  const std::uint64_t limit = body.number("limit", {1, limits::kHoldersMax}).value_or(1);
  if (shared && limit != 1) body.refuse("shared and limit exclude each other");
  if (wish.locks.size() > 1 && (shared || limit != 1))
    body.refuse("several locks are taken exclusively: neither shared nor limit goes with them");
  if (shared) wish.command.emplace_back("SHARED");
  append_number(wish, "LIMIT", limit, 1);
}

void append_max_hold(Wish& wish, Body& body, std::uint64_t ttl) {
  const std::uint64_t max = count_of(limits::kMaxHoldMax);
  const std::uint64_t hold = body.number("max_hold_ms", {0, max}).value_or(0);
  if (hold != 0 && hold < ttl)
    body.refuse(fmt::format("max_hold_ms must be 0 (no cap), or {} (ttl_ms) to {}, got {}", ttl,
                            max, hold));
  append_number(wish, "MAXHOLD", hold, 0);
}

void append_meta(Wish& wish, Body& body) {
  const auto pairs = body.pairs("meta");
  if (pairs.size() > limits::kMetaPairs)
    return body.refuse(fmt::format("meta takes at most {} pairs", limits::kMetaPairs));
  std::size_t bytes = 0;
  for (const auto& [key, value] : pairs) {
    if (auto wrong = wrong_text("a key of meta", key, {1, limits::kMetaBytes}))
      return body.refuse(std::move(*wrong));
    if (auto wrong = wrong_text("a value of meta", value, {0, limits::kMetaBytes}))
      return body.refuse(std::move(*wrong));
    bytes += key.size() + value.size();
    wish.command.insert(wish.command.end(), {"META", key, value});
  }
  if (bytes > limits::kMetaBytes)
    body.refuse(too_long(
        fmt::format("meta takes at most {} bytes in all, got {}", limits::kMetaBytes, bytes)));
}

// Everything that the wire's parser checks is checked here first, so that errors name what the
// request has.
std::variant<Wish, Problem> read_wish(const http::Request& request, Millis ttl_max) {
  Wish wish;
  wish.command.emplace_back("ACQUIRE");
  Body body(request.body, {"locks", "ttl_ms", "wait_ms", "owner", "shared", "limit", "delay_ms",
                           "max_hold_ms", "meta"});
  append_locks(wish, body);
  const auto ttl = body.number("ttl_ms", {count_of(limits::kTtlMin), count_of(ttl_max)});
  if (!ttl) body.refuse("ttl_ms is required");
  append_number(wish, "TTL", ttl, UINT64_MAX);
  const auto wait = body.number("wait_ms", {0, count_of(limits::kHttpWaitMax)});
  append_number(wish, "WAIT", wait, 0);
  if (const auto owner = body.text("owner", {1, limits::kOwnerMax}))
    wish.command.insert(wish.command.end(), {"OWNER", *owner});
  append_mode(wish, body);
  append_number(wish, "DELAY", body.number("delay_ms", {0, count_of(limits::kDelayMax)}), 0);
  append_max_hold(wish, body, ttl.value_or(0));
  append_meta(wish, body);
  if (auto wrong = body.finish()) return *wrong;
  const auto key = idempotency_key(request, wait.value_or(0) > 0);
  if (!key) return invalid(key.error().detail, "idempotency_key");
  if (!key->empty()) wish.command.insert(wish.command.end(), {"REQUEST", *key});
  return wish;
}

std::int64_t integer_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  return value == nullptr ? 0 : value->as_integer().value_or(0);
}

std::string text_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  return value == nullptr ? "" : value->text;
}

// In seconds, as Retry-After wants it: when whoever is in the way may be gone.
std::string seconds(std::int64_t ms) {
  return std::to_string(std::max<std::int64_t>(1, (ms + 999) / 1000));
}

Problem held(std::string detail, std::int64_t retry_ms) {
  return {409,
          "held",
          "not obtained",
          std::move(detail),
          http::Retry::kLater,
          {{"Retry-After", seconds(retry_ms)}}};
}

Problem held_by(const std::string& lock, const wire::Value& holder) {
  const std::string owner = text_of(holder, "owner");
  const std::int64_t expires = integer_of(holder, "expires_in_ms");
  Problem problem =
      held(fmt::format("{} is held by {} with token {}; it expires in {} ms unless renewed",
                       wire::shown(lock), owner.empty() ? "someone" : owner,
                       integer_of(holder, "token"), expires),
           expires);
  problem.more["lock"] = lock;
  problem.more["owner"] = owner;
  problem.more["token"] = integer_of(holder, "token");
  problem.more["expires_in_ms"] = expires;
  return problem;
}

// No lock is held now. After a restore nothing is granted for a while; a wait that ends before that
// is answered like a request that did not wait.
Step explain_without_holder() {
  return Ask{{"STATUS"}, [](const wire::Value& status) -> Step {
               if (const Millis left(integer_of(status, "restoring_ms")); left > Millis(0))
                 return still_restoring(left);
               return held(
                   "not free when asked, though nobody holds it now: others are waiting in line",
                   1000);
             }};
}

// Why the locks were not granted: the first of them that is held or closed, as it is now.
Step explain(std::vector<std::string> locks, std::size_t at) {
  if (at == locks.size()) return explain_without_holder();
  std::string lock = locks[at];
  return Ask{
      {"INSPECT", lock}, [locks = std::move(locks), at, lock](const wire::Value& state) -> Step {
        if (const wire::Value* holders = state.find("holders");
            holders != nullptr && !holders->items.empty())
          return held_by(lock, holders->items.front());
        if (text_of(state, "state") == "closed") {
          const std::int64_t reopens = integer_of(state, "reopens_in_ms");
          Problem closed =
              held(wire::shown(lock) + " is closed after a lease that was not released", reopens);
          closed.more["lock"] = lock;
          closed.more["reopens_in_ms"] = reopens;
          return closed;
        }
        return explain(locks, at + 1);
      }};
}

Step acquire(const Asked& asked) {
  auto read = read_wish(asked.http, asked.ttl_max);
  if (auto* wrong = std::get_if<Problem>(&read)) return *wrong;
  Wish& wish = std::get<Wish>(read);
  return Ask{std::move(wish.command),
             [locks = std::move(wish.locks)](const wire::Value& grant) -> Step {
               if (grant.is_null()) return explain(locks, 0);
               return json_response(201, to_json(grant));
             }};
}

// --- Renew and release ---------------------------------------------------------------------------

// The lease from its header, after checking that the body, if there is one, has no members.
std::variant<LeaseId, Problem> lease_of(const http::Request& request) {
  const Body body(request.body, {});
  if (auto wrong = body.finish()) return *wrong;
  const auto header = request.header("Pawl-Lease");
  if (!header) return invalid("the header Pawl-Lease is required, once", "lease_required");
  const auto lease = lease_from_hex(*header);
  // What was sent is not repeated: it may be a secret with a slip in it.
  if (!lease)
    return invalid(fmt::format("Pawl-Lease must be {} lowercase hex digits", kLeaseDigits));
  return *lease;
}

Step renew(const Asked& asked) {
  auto lease = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&lease)) return *wrong;
  return Ask{{"RENEW", to_hex(std::get<LeaseId>(lease))}, [](const wire::Value& left) -> Step {
               return json_response(200, boost::json::object{{"expires_in_ms", left.integer}});
             }};
}

http::Response release_answer(bool released, std::string_view how) {
  return json_response(200, boost::json::object{{"released", released}, {"how", how}});
}

// A holder whose lease was over before it released must learn so: what it did last may have come
// too late.
Step release(const Asked& asked) {
  auto read = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&read)) return *wrong;
  const LeaseId lease = std::get<LeaseId>(read);
  return Ask{{"RELEASE", to_hex(lease)}, [lease](const wire::Value& done) -> Step {
               if (done.integer != 0) return release_answer(true, "released");
               // This reply came after the end was durable, so the end may be told.
               return Look{[lease](const server::Engine& engine) -> std::function<Step()> {
                 const auto ending = engine.core().ending_of(lease);
                 return [how = ending ? core::to_text(*ending) : "unknown"]() -> Step {
                   return release_answer(false, how);
                 };
               }};
             }};
}

}  // namespace

void add_lease_routes(RouteTable& table) {
  constexpr std::string_view kProblem = "application/problem+json";
  const Parameter lease{Place::kHeader, "Pawl-Lease", true,
                        R"({"type":"string","pattern":"^[0-9a-f]{32}$"})",
                        "the lease, as acquire answered it: a secret"};
  table.add({
      .method = "POST",
      .path = "/v1/acquire",
      .access = wire::Access::kUse,
      .id = "acquire",
      .summary = "take locks, all or none; with wait_ms wait in line for them",
      .handler = acquire,
      .parameters =
          {{Place::kHeader, "Idempotency-Key", false,
            R"({"type":"string","pattern":"^\"?[A-Za-z0-9_-]{22,64}\"?$"})",
            "22 to 64 of A-Z a-z 0-9 _ -, at least 128 random bits; required when wait_ms > 0. A "
            "retry with the same key answers the same lease"}},
      .body = "AcquireRequest",
      .answers = {{201, "Grant", "granted"},
                  {409, "Held",
                   "held by someone else (code held), or the key was used for something else (code "
                   "conflict)",
                   kProblem},
                  {410, "Lost", "the key's lease is over; how says how it ended", kProblem}},
      .example =
          R"(-H 'Content-Type: application/json' -d '{"locks":["reports/nightly"],"ttl_ms":15000}' http://127.0.0.1:7296/v1/acquire)",
  });
  table.add({
      .method = "POST",
      .path = "/v1/renew",
      .access = wire::Access::kUse,
      .id = "renew",
      .summary = "extend a lease still held; takes no body",
      .handler = renew,
      .parameters = {lease},
      .answers = {{200, "Renewal", "renewed"},
                  {410, "Lost", "the lease is over; how says how it ended", kProblem}},
      .example = R"(-H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/renew)",
  });
  table.add({
      .method = "POST",
      .path = "/v1/release",
      .access = wire::Access::kUse,
      .id = "release",
      .summary = "end a lease now; takes no body",
      .handler = release,
      .parameters = {lease},
      .answers =
          {{200, "Release",
            "the lease is over. released is true when this request ended it. When it is false, how "
            "says how the lease had ended before: anything but released means that it was lost "
            "while "
            "its holder may have gone on"}},
      .example = R"(-H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/release)",
  });
}

}  // namespace pawl::api
