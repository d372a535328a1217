// Acquire, renew, release.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/engine.h"
#include "wire/acquire_options.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

using http::Problem;
using wire::AcquireOption;
using wire::OptionKind;

constexpr std::string_view kTtl = "ttl_ms";

// --- Acquire -------------------------------------------------------------------------------------

struct AcquireCommand {
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

void append_locks(AcquireCommand& acquire, Body& body) {
  acquire.locks = body.texts("locks");
  if (acquire.locks.empty() || acquire.locks.size() > limits::kLocksPerLease)
    body.refuse(fmt::format("locks must name 1 to {} locks", limits::kLocksPerLease));
  for (std::size_t i = 0; i < acquire.locks.size(); ++i) {
    const std::string& lock = acquire.locks[i];
    if (auto wrong = wrong_text(fmt::format("locks[{}]", i), lock, {1, limits::kLockNameMax}))
      body.refuse(std::move(*wrong));
    if (std::find(acquire.locks.begin(), acquire.locks.begin() + static_cast<std::ptrdiff_t>(i),
                  lock) != acquire.locks.begin() + static_cast<std::ptrdiff_t>(i))
      body.refuse(fmt::format("locks names {} twice", wire::shown(lock)));
    if (i > 0) acquire.command.emplace_back("AND");
    acquire.command.push_back(lock);
  }
}

void append_number(AcquireCommand& acquire, const AcquireOption& option,
                   std::optional<std::uint64_t> value) {
  if (!value || value == option.omitted) return;
  acquire.command.insert(acquire.command.end(), {std::string(option.word), std::to_string(*value)});
}

void append_meta(AcquireCommand& acquire, Body& body) {
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
    acquire.command.insert(acquire.command.end(), {"META", key, value});
  }
  if (bytes > limits::kMetaBytes)
    body.refuse(too_long(
        fmt::format("meta takes at most {} bytes in all, got {}", limits::kMetaBytes, bytes)));
}

void append_option(AcquireCommand& acquire, Body& body, const AcquireOption& option,
                   Millis ttl_max) {
  switch (option.kind) {
    case OptionKind::kMillis:
    case OptionKind::kNumber: {
      const std::uint64_t max = option.member == kTtl ? count_of(ttl_max) : option.member_max();
      const auto value = body.number(option.member, {option.min, max});
      if (!value && !option.omitted) body.refuse(fmt::format("{} is required", option.member));
      return append_number(acquire, option, value);
    }
    case OptionKind::kFlag:
      if (body.boolean(option.member).value_or(false)) acquire.command.emplace_back(option.word);
      return;
    case OptionKind::kText:
      if (const auto text = body.text(option.member, {option.min, option.max}))
        acquire.command.insert(acquire.command.end(), {std::string(option.word), *text});
      return;
    case OptionKind::kMeta:
      return append_meta(acquire, body);
    case OptionKind::kRequestId:
      return;  // The header Idempotency-Key.
  }
}

// What only the whole body can show. Members are read again, as they were when they were appended.
void check_together(const AcquireCommand& acquire, Body& body) {
  constexpr Bounds kAny{0, UINT64_MAX};
  const bool shared = body.boolean("shared").value_or(false);
  const bool limited = body.number("limit", kAny).value_or(1) != 1;
  if (shared && limited) body.refuse("shared and limit exclude each other");
  if (acquire.locks.size() > 1 && (shared || limited))
    body.refuse("several locks are taken exclusively: neither shared nor limit goes with them");
  const std::uint64_t ttl = body.number(kTtl, kAny).value_or(0);
  const std::uint64_t hold = body.number("max_hold_ms", kAny).value_or(0);
  if (hold != 0 && hold < ttl)
    body.refuse(fmt::format("max_hold_ms must be 0 (no cap), or {} (ttl_ms) to {}, got {}", ttl,
                            limits::kMaxHoldMax.count(), hold));
}

std::vector<std::string_view> body_members() {
  std::vector<std::string_view> members{"locks"};
  for (const AcquireOption& option : wire::acquire_options()) {
    if (!option.member.empty()) members.push_back(option.member);
  }
  return members;
}

// Everything that the wire's parser checks is checked here first, so that errors name what the
// request has.
std::variant<AcquireCommand, Problem> read_acquire(const http::Request& request, Millis ttl_max) {
  AcquireCommand acquire;
  acquire.command.emplace_back("ACQUIRE");
  Body body(request.body, body_members());
  append_locks(acquire, body);
  for (const AcquireOption& option : wire::acquire_options()) {
    if (!option.member.empty()) append_option(acquire, body, option, ttl_max);
  }
  check_together(acquire, body);
  const bool waits = body.number("wait_ms", {0, UINT64_MAX}).value_or(0) > 0;
  if (auto wrong = body.finish()) return *wrong;
  const auto key = idempotency_key(request, waits);
  if (!key) return invalid(key.error().detail, "idempotency_key");
  if (!key->empty()) acquire.command.insert(acquire.command.end(), {"REQUEST", *key});
  return acquire;
}

std::int64_t integer_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  return value == nullptr ? 0 : value->as_integer().value_or(0);
}

std::string text_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  return value == nullptr ? "" : value->text;
}

// In seconds, as Retry-After wants it: when the holder in the way may be gone.
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
  return RunCommand{
      {"STATUS"}, [](const wire::Value& status) -> Step {
        if (const Millis left(integer_of(status, "restoring_ms")); left > Millis(0))
          return still_restoring(left);
        return held("not free when requested, though not held now: other clients wait in its queue",
                    1000);
      }};
}

// Why the locks were not granted: the first of them that is held or closed, as it is now.
Step explain(std::vector<std::string> locks, std::size_t at) {
  if (at == locks.size()) return explain_without_holder();
  std::string lock = locks[at];
  return RunCommand{
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

}  // namespace

Step acquire(const RouteRequest& asked) {
  auto read = read_acquire(asked.http, asked.ttl_max);
  if (auto* wrong = std::get_if<Problem>(&read)) return *wrong;
  AcquireCommand& parsed = std::get<AcquireCommand>(read);
  return RunCommand{std::move(parsed.command),
                    [locks = std::move(parsed.locks)](const wire::Value& grant) -> Step {
                      if (grant.is_null()) return explain(locks, 0);
                      return json_response(201, to_json(grant));
                    }};
}

// --- Renew and release ---------------------------------------------------------------------------

namespace {

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

http::Response release_answer(bool released, std::string_view how) {
  return json_response(200, boost::json::object{{"released", released}, {"how", how}});
}

}  // namespace

Step renew(const RouteRequest& asked) {
  auto lease = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&lease)) return *wrong;
  return RunCommand{
      {"RENEW", to_hex(std::get<LeaseId>(lease)), "ASKS"},
      [](const wire::Value& renewal) -> Step { return json_response(200, to_json(renewal)); }};
}

// A holder whose lease was over before it released must learn so: what it did last may have come
// too late.
Step release(const RouteRequest& asked) {
  auto read = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&read)) return *wrong;
  const LeaseId lease = std::get<LeaseId>(read);
  return RunCommand{
      {"RELEASE", to_hex(lease)}, [lease](const wire::Value& done) -> Step {
        if (done.integer != 0) return release_answer(true, "released");
        // This reply came after the end was durable, so the end may be shown.
        return EngineQuery{[lease](const server::Engine& engine) -> std::function<Step()> {
          const auto ending = engine.core().ending_of(lease);
          return [how = ending ? core::to_text(*ending) : "unknown"]() -> Step {
            return release_answer(false, how);
          };
        }};
      }};
}

}  // namespace pawl::api
