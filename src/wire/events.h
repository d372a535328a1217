// The events of OBSERVE, written and read in one place: ["pawl", event, id, lock, map], a push in
// RESP3, an array in RESP2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"
#include "wire/reply_writer.h"
#include "wire/value.h"

namespace pawl::wire {

enum class EventKind : std::uint8_t {
  kGranted,
  kReleased,
  kExpired,
  kBreaking,
  kBroken,
  kRaised,
  kReleaseWanted,
  kReset
};
[[nodiscard]] std::string_view to_text(EventKind kind);

// `incarnation-n`: 16 hex digits, and a number that never decreases within the incarnation. Of all
// events only kReleaseWanted, which is not stored, may have the number of the event before it.
struct EventId {
  Incarnation incarnation;
  std::uint64_t n = 0;
  auto operator<=>(const EventId&) const = default;
};
[[nodiscard]] std::string to_text(const EventId& id);
[[nodiscard]] std::optional<EventId> event_id_from_text(std::string_view text);

// An event to be written. Empty texts and zeros are left out of the map.
struct EventView {
  EventKind kind = EventKind::kReset;
  EventId id;
  std::string_view lock;  // Empty for kRaised and kReset, which concern every lock.
  Token token;
  std::string_view mode;
  std::string_view owner;  // Of the lease; for kReleaseWanted who asks.
  std::string_view how;    // How the lease ended.
  std::string_view reason;
  UnixMs at;
};
void write_event(ReplyWriter& reply, const EventView& event);

// An event that was received.
struct EventPush {
  EventKind kind = EventKind::kReset;
  EventId id;
  std::string lock;
  Token token;
  std::string mode, owner, how, reason;
  UnixMs at;
  bool operator==(const EventPush&) const = default;
};
// Nothing if the frame is not an event of OBSERVE (a reply, the end of a wait, or unknown).
[[nodiscard]] std::optional<EventPush> read_event(const Value& frame);

}  // namespace pawl::wire
