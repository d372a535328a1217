#include "server/verbs/lease_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/hex.h"
#include "wire/acquire_options.h"
#include "wire/replies.h"

namespace pawl::server {
namespace {

constexpr HttpParameter kLeaseHeader{ParameterIn::kHeader, "Pawl-Lease", true,
                                     R"({"type":"string","pattern":"^[0-9a-f]{32}$"})",
                                     "the lease, as acquire answered it: a secret"};

// --- ACQUIRE -------------------------------------------------------------------------------------

AcquireSpec parse_acquire(wire::ArgReader& in, const ParseContext& context) {
  AcquireSpec spec;
  wire::parse_acquire(in, spec, context.ttl_max, context.protocol);
  return spec;
}

Served refuse_acquire(const Command& command, wire::ErrorCode code, std::string_view text) {
  command.services.telemetry.count_refused();
  return command.error(code, text);
}

bool would_wait(const core::Outcome& outcome) {
  const auto* refused = std::get_if<core::Refused>(&outcome);
  return std::holds_alternative<core::NotObtained>(outcome) ||
         (refused != nullptr && refused->why == core::Refused::Why::kRestoring);
}

// For a connection with as many ASYNC waits as it may have: what needs no further wait is served.
Served acquire_without_wait(Command& command, core::Acquire input) {
  const Services& services = command.services;
  if (!services.core.waiting_as(input.spec.request)) {  // Else it would end the wait of another.
    input.spec.wait = Millis(0);
    input.spec.async = false;
    const core::Reply reply = services.replies.ask(input, command.now, &command.session);
    if (!would_wait(reply.outcome)) {
      services.stats.count_acquire(reply.outcome);
      return command.answer(reply, true);
    }
  }
  return refuse_acquire(command, wire::ErrorCode::kBusy,
                        fmt::format("waiters: the limit of {} per ASYNC connection is reached",
                                    services.settings.async_waits_max));
}

Served acquire(Command& command, const AcquireSpec& spec) {
  const Services& services = command.services;
  Session& session = command.session;
  for (const std::string_view lock : spec.locks) {
    if (const Refusal refusal = AccessControl::check_lock(session, lock))
      return refuse_acquire(command, refusal->code, refusal->text);
  }
  const ScopedRequestId request(session, spec.request);
  if (spec.terms.delay > services.settings.delay_max) {
    return refuse_acquire(
        command, wire::ErrorCode::kErr,
        fmt::format("DELAY must be 0 to {} ms (max_delay_ms), got {}",
                    services.settings.delay_max.count(), spec.terms.delay.count()));
  }
  if (!services.core.remembers(request.text()) && !services.store.prepare_grant()) {
    return refuse_acquire(command, wire::ErrorCode::kFull,
                          "no disk space for new grants; renewals and releases go on");
  }
  core::Acquire input{kDirect, spec, services.random.lease_id(), session.account};
  input.spec.request = request.text();
  if (session.hung_up) {  // Nothing is queued for it.
    input.spec.wait = Millis(0);
    input.spec.async = false;
    input.hung_up = true;
  }
  if (input.spec.wait == Millis(0)) {
    const core::Reply reply = services.replies.ask(input, command.now, &session);
    services.stats.count_acquire(reply.outcome);
    return command.answer(reply, true);
  }
  if (input.spec.async && session.async_waits >= services.settings.async_waits_max &&
      !services.replies.is_waiting_for(session, request.text())) {
    return acquire_without_wait(command, input);
  }
  const bool ok = services.replies.wait(session, input, spec.request, command.now);
  return ok ? Served::kOk : Served::kError;
}

constexpr std::array kAcquireParameters{HttpParameter{
    ParameterIn::kHeader, "Idempotency-Key", false,
    R"({"type":"string","pattern":"^\"?[A-Za-z0-9_-]{22,64}\"?$"})",
    "22 to 64 of A-Z a-z 0-9 _ -, at least 128 random bits; required when wait_ms > 0. A "
    "retry with the same key answers the same lease"}};
constexpr std::array kAcquireAnswers{
    HttpAnswer{201, "Grant", "granted"},
    HttpAnswer{409, "Held",
               "held by someone else (code held), or the key was used for something else (code "
               "conflict)",
               kProblemJson},
    HttpAnswer{410, "Lost", "the key's lease is over; how says how it ended", kProblemJson}};
constexpr HttpRoute kAcquireRoute{
    .method = "POST",
    .path = "/v1/acquire",
    .id = "acquire",
    .summary = "take locks, all or none; with wait_ms wait in line for them",
    .parameters = kAcquireParameters,
    .body = "AcquireRequest",
    .answers = kAcquireAnswers,
    .example =
        R"(-H 'Content-Type: application/json' -d '{"locks":["reports/nightly"],"ttl_ms":15000}' http://127.0.0.1:7296/v1/acquire)",
};

// --- CANCEL --------------------------------------------------------------------------------------

std::string_view parse_cancel(wire::ArgReader& in) {
  return in.request_id();
}

Served cancel(Command& command, std::string_view request) {
  const ScopedRequestId scoped(command.session, request);
  // The kernel may deliver what an abandoned connection sent after its client has asked again on a
  // new one: that wait is not the one that was to end.
  if (command.session.hung_up &&
      command.services.replies.newer_waits_for(command.session, scoped.text())) {
    command.reply().integer(0);
    return command.done();
  }
  return command.answer(
      command.services.replies.ask(core::CancelRequest{kDirect, scoped.text()}, command.now), true);
}

// --- RENEW, MRENEW -------------------------------------------------------------------------------

LeaseId parse_lease(wire::ArgReader& in) {
  return in.lease();
}

struct RenewRequest {
  LeaseId lease;
  bool asks = false;  // answer with what somebody has asked of the holder
};

RenewRequest parse_renew(wire::ArgReader& in) {
  RenewRequest request{in.lease()};
  request.asks = in.option("ASKS");
  in.refuse_rest();
  return request;
}

// In the histogram's unit. Near its MAXHOLD a lease gets less than its TTL; it is compared with
// what it got.
std::int64_t ratio_left(const core::Renewed& renewed) {
  if (renewed.before >= renewed.left) return Ratio::kWhole;
  return Ratio::kWhole * renewed.before.count() / renewed.left.count();
}

void count_renewal(Telemetry& telemetry, const core::Outcome& outcome) {
  if (const auto* renewed = std::get_if<core::Renewed>(&outcome)) {
    ++telemetry.renewed;
    telemetry.margin.observe(renewed->before);
    telemetry.margin_ratio.observe(ratio_left(*renewed));
    return;
  }
  ++telemetry.not_renewed;
  const auto* lost = std::get_if<core::Lost>(&outcome);
  if (lost != nullptr && lost->ending == core::Ending::kExpired) ++telemetry.used_after_expiry;
}

core::Reply ask_to_renew(const Command& command, LeaseId lease) {
  const core::Reply reply = command.services.replies.ask(
      core::Renew{kDirect, lease, command.session.account}, command.now);
  count_renewal(command.services.telemetry, reply.outcome);
  return reply;
}

Served renew(Command& command, const RenewRequest& request) {
  const core::Reply reply = ask_to_renew(command, request.lease);
  const auto* renewed = std::get_if<core::Renewed>(&reply.outcome);
  if (!request.asks || renewed == nullptr) return command.answer(reply);
  wire::RenewalReply renewal{renewed->left};
  if (const auto ask = command.services.core.ask_for(request.lease))
    renewal.release_wanted = wire::ReleaseWanted{ask->number, ask->lock, ask->by, ask->reason};
  wire::ReplyWriter writer = command.reply();
  wire::write_renewal(writer, renewal);
  return command.done(reply.after);
}

// The results are gathered before the first byte is written: a renewal that ends a lease (MAXHOLD)
// may hand its lock to an ASYNC wait of this very connection, and a push must not land inside the
// array.
Served mrenew(Command& command, const MRenewRequest& request) {
  std::array<wire::RenewedItem, limits::kRenewsPerCall> items;
  PAWL_ASSERT(request.leases.size() <= items.size());
  BatchId after;
  for (std::size_t i = 0; i < request.leases.size(); ++i) {
    const core::Reply reply = ask_to_renew(command, *lease_from_hex(request.leases[i]));
    const auto* renewed = std::get_if<core::Renewed>(&reply.outcome);
    if (renewed != nullptr) items[i] = {renewed->left, request.asks ? renewed->ask : 0};
    after = std::max(after, reply.after);
  }
  wire::ReplyWriter reply = command.reply();
  reply.array(request.leases.size());
  for (std::size_t i = 0; i < request.leases.size(); ++i) wire::write_renewed_item(reply, items[i]);
  return command.done(after);
}

constexpr std::array kRenewParameters{kLeaseHeader};
constexpr std::array kRenewAnswers{
    HttpAnswer{200, "Renewal", "renewed"},
    HttpAnswer{410, "Lost", "the lease is over; how says how it ended", kProblemJson}};
constexpr HttpRoute kRenewRoute{
    .method = "POST",
    .path = "/v1/renew",
    .id = "renew",
    .summary = "extend a lease still held; takes no body",
    .parameters = kRenewParameters,
    .answers = kRenewAnswers,
    .example = R"(-H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/renew)",
};

// --- RELEASE -------------------------------------------------------------------------------------

Served release(Command& command, LeaseId lease) {
  const Services& services = command.services;
  const core::Reply reply = services.replies.ask(core::Release{kDirect, lease}, command.now);
  const auto* released = std::get_if<core::Released>(&reply.outcome);
  if (released != nullptr && !released->was_live &&
      services.core.ending_of(lease) == core::Ending::kExpired)
    ++services.telemetry.used_after_expiry;
  return command.answer(reply);
}

constexpr std::array kReleaseAnswers{HttpAnswer{
    200, "Release",
    "the lease is over. released is true when this request ended it. When it is false, how "
    "says how the lease had ended before: anything but released means that it was lost while "
    "its holder may have gone on"}};
constexpr HttpRoute kReleaseRoute{
    .method = "POST",
    .path = "/v1/release",
    .id = "release",
    .summary = "end a lease now; takes no body",
    .parameters = kRenewParameters,
    .answers = kReleaseAnswers,
    .example = R"(-H "Pawl-Lease: $LEASE" -X POST http://127.0.0.1:7296/v1/release)",
};

}  // namespace

MRenewRequest parse_mrenew(wire::ArgReader& in) {
  const bool asks = in.option("ASKS");
  const MRenewRequest request{in.remaining(), asks};
  if (in.ok() && request.leases.empty()) in.refuse(wire::ErrorCode::kErr, "MRENEW needs a lease");
  if (request.leases.size() > limits::kRenewsPerCall) {
    in.refuse(wire::ErrorCode::kTooLong,
              fmt::format("MRENEW takes at most {} leases, got {}", limits::kRenewsPerCall,
                          request.leases.size()));
  }
  while (in.more()) (void)in.lease();  // One that is malformed refuses the whole call.
  return request;
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kAcquire{
    .name = "ACQUIRE",
    .arity = -4,
    .access = wire::Access::kUse,
    .group = "lock",
    .takes_locks = true,
    .stores = true,
    .usage =
        "lock [AND lock]... TTL ms [WAIT ms [ASYNC]] [SHARED | LIMIT n] [OWNER text] "
        "[REQUEST id] [DELAY ms] [MAXHOLD ms] [META key value]...",
    .summary = "take locks, all or none, or join their queues",
    .reply =
        "map: lease, token, floor, slot, ttl_ms, waited_ms; null when not obtained in time; "
        "with ASYNC a map state=queued, position, and later a push",
    .example = "ACQUIRE reports/nightly TTL 15000 WAIT 30000 OWNER batch@host:411",
    .handler = kHandler<parse_acquire, acquire>,
    .http = &kAcquireRoute,
};

constinit const Verb kCancel{
    .name = "CANCEL",
    .arity = 2,
    .access = wire::Access::kUse,
    .group = "lock",
    .usage = "request",
    .summary = "stop waiting for a request",
    .reply = "1 no longer waiting; 0 it was not waiting: a grant then stands, and must be released",
    .example = "CANCEL 3q9sJ0vWl2mTz8hXc1dRkA",
    .handler = kHandler<parse_cancel, cancel>,
};

constinit const Verb kRenew{
    .name = "RENEW",
    .arity = -2,
    .access = wire::Access::kUse,
    .group = "lease",
    .on_reserved = true,
    .served_first = true,
    .usage = "lease [ASKS]",
    .summary = "extend a lease still held; with ASKS learn also whether somebody wants it released",
    .reply =
        "integer: ms until it expires; with ASKS a map: expires_in_ms, release_wanted (null, or of "
        "the newest ASK a map: ask, lock, by, reason)",
    .example = "RENEW 5f0c1b7a9d3e4f60812233445566778f",
    .handler = kHandler<parse_renew, renew>,
    .http = &kRenewRoute,
};

constinit const Verb kMRenew{
    .name = "MRENEW",
    .arity = -2,
    .access = wire::Access::kUse,
    .group = "lease",
    .on_reserved = true,
    .served_first = true,
    .usage = "[ASKS] lease [lease]...",
    .summary = "extend up to 1024 leases at once",
    .reply =
        "array of integers in the order asked: ms until it expires, -1 = over; with ASKS, of a "
        "lease that somebody wants released, an array: ms, ask (RENEW with ASKS explains it)",
    .example = "MRENEW 5f0c1b7a9d3e4f60812233445566778f 00112233445566778899aabbccddeeff",
    .handler = kHandler<parse_mrenew, mrenew>,
};

constinit const Verb kRelease{
    .name = "RELEASE",
    .arity = 2,
    .access = wire::Access::kUse,
    .group = "lease",
    .on_reserved = true,
    .served_first = true,
    .stores = true,
    .usage = "lease",
    .summary = "end a lease now",
    .reply = "1 released; 0 it was already over",
    .example = "RELEASE 5f0c1b7a9d3e4f60812233445566778f",
    .handler = kHandler<parse_lease, release>,
    .http = &kReleaseRoute,
};

}  // namespace pawl::server
