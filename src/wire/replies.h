// The shapes of replies that server and client share, written and read in one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/lease_terms.h"
#include "base/types.h"
#include "pawl/result.h"
#include "wire/reply_writer.h"
#include "wire/value.h"

namespace pawl::wire {

// The answer to ACQUIRE when it was granted.
using GrantReply = Granted;
// The answer to ACQUIRE … ASYNC when it has to wait.
struct QueuedReply {
  std::uint64_t position = 0;  // 1 is next
  bool operator==(const QueuedReply&) const = default;
};
struct NotObtained {
  bool operator==(const NotObtained&) const = default;
};
using AcquireReply = std::variant<GrantReply, QueuedReply, NotObtained>;

void write_grant(ReplyWriter& reply, const GrantReply& grant);
void write_queued(ReplyWriter& reply, const QueuedReply& queued);

// A reply to ACQUIRE as it came. An error line becomes its conclusion; a shape that is none of ours
// is kUnknown: the grant may have happened.
[[nodiscard]] Result<AcquireReply> read_acquire(const Value& value);
[[nodiscard]] Result<GrantReply> read_grant(const Value& value);

// What a holder is told when somebody wants it to let go.
struct ReleaseWanted {
  std::uint64_t ask = 0;  // greater than that of any ask before
  std::string lock, by, reason;
  bool operator==(const ReleaseWanted&) const = default;
};
// The answer to RENEW … ASKS.
struct RenewalReply {
  Millis expires_in{0};
  std::optional<ReleaseWanted> release_wanted = {};
  bool operator==(const RenewalReply&) const = default;
};
void write_renewal(ReplyWriter& reply, const RenewalReply& renewal);
[[nodiscard]] Result<RenewalReply> read_renewal(const Value& value);

// An item of the answer to MRENEW ASKS: time until the lease expires and, if somebody wants its
// holder to let go, the number of the ask, which RENEW … ASKS explains.
struct RenewedItem {
  std::optional<Millis> expires_in = {};  // nothing: the lease is over
  std::uint64_t ask = 0;                  // 0: nobody has asked
  bool operator==(const RenewedItem&) const = default;
};
void write_renewed_item(ReplyWriter& reply, const RenewedItem& item);
// Nothing if it has another shape.
[[nodiscard]] std::optional<RenewedItem> read_renewed_item(const Value& value);

// RENEW: time until it expires. RELEASE, CANCEL, BREAK: 1 or 0. RAISE: the new last token.
[[nodiscard]] Result<std::int64_t> read_integer(const Value& value);

// The end of an ASYNC wait: push ["pawl", event, request, map].
enum class WaitEvent : std::uint8_t { kGranted, kTimeout, kCancelled, kSuperseded };
struct WaitPush {
  WaitEvent event = WaitEvent::kTimeout;
  std::string request;
  std::optional<GrantReply> grant;  // with kGranted, and only then
};
[[nodiscard]] std::string_view to_text(WaitEvent event);
// `grant` when granted, nullptr otherwise: then the map is empty.
void write_wait_push(ReplyWriter& reply, WaitEvent event, std::string_view request,
                     const GrantReply* grant);
// Nothing when the push is not about a wait (an event of OBSERVE, or unknown).
[[nodiscard]] std::optional<WaitPush> read_wait_push(const Value& push);

}  // namespace pawl::wire
