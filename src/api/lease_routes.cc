// Acquire, renew, release.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/limits.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

using http::Problem;

// --- Acquire ---------------------------------------------------------------------------------------------------------

struct Wish {
  std::vector<std::string> command;
  std::vector<std::string> locks;
};

bool is_request_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return text.size() >= limits::kRequestMin && text.size() <= limits::kRequestMax &&
         std::all_of(text.begin(), text.end(), fits);
}

// Empty when there is none. Quotes may surround it: that is how the header is written where it is a structured field.
Result<std::string> idempotency_key(const http::Request& request, bool waits) {
  constexpr std::string_view kHeader = "Idempotency-Key";
  if (request.count(kHeader) == 0) {
    if (!waits) return std::string();
    return Error{Code::kInvalid,
                 "wait_ms needs the header Idempotency-Key: without it a retry would queue a second time"};
  }
  std::string_view key = request.header(kHeader).value_or("");
  if (key.size() >= 2 && key.starts_with('"') && key.ends_with('"')) key = key.substr(1, key.size() - 2);
  if (is_request_id(key)) return std::string(key);
  return Error{Code::kInvalid,
               fmt::format("Idempotency-Key must be one of {} to {} characters of A-Z a-z 0-9 _ -, at "
                           "least 128 random bits",
                           limits::kRequestMin, limits::kRequestMax)};
}

void append_locks(Wish& wish, Body& body) {
  wish.locks = body.texts("locks");
  if (wish.locks.empty() || wish.locks.size() > limits::kLocksPerLease)
    body.refuse(fmt::format("locks must name 1 to {} locks", limits::kLocksPerLease));
  for (const std::string& lock : wish.locks) {
    if (wish.command.size() > 1) wish.command.emplace_back("AND");
    wish.command.push_back(lock);
  }
}

void append_number(Wish& wish, std::string_view option, std::optional<std::uint64_t> value,
                   std::uint64_t by_default) {
  const std::uint64_t number = value.value_or(by_default);
  if (number == by_default) return;
  wish.command.insert(wish.command.end(), {std::string(option), std::to_string(number)});
}

void append_meta(Wish& wish, Body& body) {
  const auto pairs = body.pairs("meta");
  if (pairs.size() > limits::kMetaPairs)
    return body.refuse(fmt::format("meta takes at most {} pairs", limits::kMetaPairs));
  for (const auto& [key, value] : pairs) wish.command.insert(wish.command.end(), {"META", key, value});
}

std::variant<Wish, Problem> read_wish(const http::Request& request) {
  Wish wish;
  wish.command.emplace_back("ACQUIRE");
  Body body(request.body);
  append_locks(wish, body);
  const auto ttl = body.number("ttl_ms");
  if (!ttl) body.refuse("ttl_ms is required");
  append_number(wish, "TTL", ttl, UINT64_MAX);
  const auto wait = body.number("wait_ms");
  if (wait && *wait > static_cast<std::uint64_t>(limits::kHttpWaitMax.count()))
    body.refuse(
        fmt::format("wait_ms must be 0 to {}; ask again to wait longer", limits::kHttpWaitMax.count()));
  append_number(wish, "WAIT", wait, 0);
  if (const auto owner = body.text("owner"); owner && !owner->empty())
    wish.command.insert(wish.command.end(), {"OWNER", *owner});
  if (body.boolean("shared").value_or(false)) wish.command.emplace_back("SHARED");
  append_number(wish, "LIMIT", body.number("limit"), 1);
  append_number(wish, "DELAY", body.number("delay_ms"), 0);
  append_number(wish, "MAXHOLD", body.number("max_hold_ms"), 0);
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
  Problem problem = held(
      fmt::format("{} is held by {} with token {}; it expires in {} ms unless renewed", wire::shown(lock),
                  owner.empty() ? "someone" : owner, integer_of(holder, "token"), expires),
      expires);
  problem.more["lock"] = lock;
  problem.more["owner"] = owner;
  problem.more["token"] = integer_of(holder, "token");
  problem.more["expires_in_ms"] = expires;
  return problem;
}

// Who is in the way: the first of the locks that somebody holds, as it is now.
Step explain(std::vector<std::string> locks, std::size_t at) {
  if (at == locks.size())
    return held("not free when asked, though nobody holds it now: others are waiting in line", 1000);
  std::string lock = locks[at];
  return Ask{{"INSPECT", lock}, [locks = std::move(locks), at, lock](const wire::Value& state) -> Step {
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
  auto read = read_wish(asked.http);
  if (auto* wrong = std::get_if<Problem>(&read)) return *wrong;
  Wish& wish = std::get<Wish>(read);
  return Ask{std::move(wish.command), [locks = std::move(wish.locks)](const wire::Value& grant) -> Step {
               if (grant.is_null()) return explain(locks, 0);
               return json_response(201, to_json(grant));
             }};
}

// --- Renew and release -----------------------------------------------------------------------------------------------

// The lease from its header, after checking that nobody put anything into the body.
std::variant<std::string, Problem> lease_of(const http::Request& request) {
  Body body(request.body);
  if (auto wrong = body.finish()) return *wrong;
  const auto lease = request.header("Pawl-Lease");
  if (!lease) return invalid("the header Pawl-Lease is required, once", "lease_required");
  return std::string(*lease);
}

Step renew(const Asked& asked) {
  auto lease = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&lease)) return *wrong;
  return Ask{{"RENEW", std::get<std::string>(lease)}, [](const wire::Value& left) -> Step {
               return json_response(200, boost::json::object{{"expires_in_ms", left.integer}});
             }};
}

Step release(const Asked& asked) {
  auto lease = lease_of(asked.http);
  if (auto* wrong = std::get_if<Problem>(&lease)) return *wrong;
  return Ask{{"RELEASE", std::get<std::string>(lease)}, [](const wire::Value&) -> Step {
               return http::Response{204, "", ""};
             }};
}

}  // namespace

void add_lease_routes(RouteTable& table) {
  const Parameter lease{Place::kHeader, "Pawl-Lease", true, "string",
                        "the lease, as acquire answered it: a secret"};
  table.add({
      .method = "POST",
      .path = "/v1/acquire",
      .access = wire::Access::kUse,
      .id = "acquire",
      .summary = "take locks, all or none; with wait_ms wait in line for them",
      .handler = acquire,
      .parameters =
          {{Place::kHeader, "Idempotency-Key", false, "string",
            "22 to 64 of A-Z a-z 0-9 _ -, at least 128 random bits; required when wait_ms > 0. A retry with "
            "the same key answers the same lease"}},
      .body = "AcquireRequest",
      .answers = {{201, "Grant", "granted"},
                  {409, "Held",
                   "held by someone else (code held), or the key was used for "
                   "something else (code conflict)",
                   "application/problem+json"},
                  {410, "Problem", "the key's lease is over", "application/problem+json"}},
      .example =
          R"(-H 'Content-Type: application/json' -d '{"locks":["reports/nightly"],"ttl_ms":15000}' http://127.0.0.1:7296/v1/acquire)",
  });
  table.add({
      .method = "POST",
      .path = "/v1/renew",
      .access = wire::Access::kUse,
      .id = "renew",
      .summary = "extend a lease still held",
      .handler = renew,
      .parameters = {lease},
      .answers = {{200, "Renewal", "renewed"},
                  {410, "Problem", "the lease is over", "application/problem+json"}},
      .example =
          R"(-H 'Content-Type: application/json' -H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/renew)",
  });
  table.add({
      .method = "POST",
      .path = "/v1/release",
      .access = wire::Access::kUse,
      .id = "release",
      .summary = "end a lease now",
      .handler = release,
      .parameters = {lease},
      .answers = {{204, "", "released, or already over"}},
      .example =
          R"(-H 'Content-Type: application/json' -H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/release)",
  });
}

}  // namespace pawl::api
