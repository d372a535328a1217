#include "wire/events.h"

#include <fmt/format.h>

#include <array>

#include "base/hex.h"
#include "base/limits.h"
#include "wire/arg_reader.h"

namespace pawl::wire {
namespace {

constexpr std::size_t kFrameItems = 5;
constexpr std::array kKinds{EventKind::kGranted,       EventKind::kReleased, EventKind::kExpired,
                            EventKind::kBreaking,      EventKind::kBroken,   EventKind::kRaised,
                            EventKind::kReleaseWanted, EventKind::kReset};

std::optional<EventKind> kind_from_text(std::string_view text) {
  for (const EventKind kind : kKinds) {
    if (text == to_text(kind)) return kind;
  }
  return std::nullopt;
}

std::string text_in(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  const auto text = found != nullptr ? found->as_text() : std::nullopt;
  return text ? std::string(*text) : std::string();
}

std::uint64_t number_in(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  const auto number = found != nullptr ? found->as_integer() : std::nullopt;
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

}  // namespace

std::string_view to_text(EventKind kind) {
  switch (kind) {
    case EventKind::kGranted:
      return "granted";
    case EventKind::kReleased:
      return "released";
    case EventKind::kExpired:
      return "expired";
    case EventKind::kBreaking:
      return "breaking";
    case EventKind::kBroken:
      return "broken";
    case EventKind::kRaised:
      return "raised";
    case EventKind::kReleaseWanted:
      return "release_wanted";
    case EventKind::kReset:
      return "reset";
  }
  return "";
}

std::string to_text(const EventId& id) {
  return fmt::format("{}-{}", to_hex(id.incarnation), id.n);
}

std::optional<EventId> event_id_from_text(std::string_view text) {
  if (text.size() <= kIncarnationDigits || text[kIncarnationDigits] != '-') return std::nullopt;
  const auto incarnation = incarnation_from_hex(text.substr(0, kIncarnationDigits));
  const auto n = digits_to_number(text.substr(kIncarnationDigits + 1));
  if (!incarnation || !n) return std::nullopt;
  return EventId{*incarnation, *n};
}

void write_event(ReplyWriter& reply, const EventView& event) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> texts{
      {{"mode", event.mode}, {"owner", event.owner}, {"how", event.how}, {"reason", event.reason}}};
  std::size_t pairs = (event.token.value != 0 ? 1 : 0) + (event.at.value != 0 ? 1 : 0);
  for (const auto& [key, text] : texts) pairs += text.empty() ? 0 : 1;

  reply.push(kFrameItems);
  reply.bulk("pawl");
  reply.bulk(to_text(event.kind));
  reply.bulk(to_text(event.id));
  reply.bulk(event.lock);
  reply.map(pairs);
  if (event.token.value != 0) reply.field("token", event.token.value);
  for (const auto& [key, text] : texts) {
    if (!text.empty()) reply.field(key, text);
  }
  if (event.at.value != 0) reply.field("at", event.at.value);
}

std::optional<EventPush> read_event(const Value& frame) {
  const bool message = frame.is_push() || frame.kind == Value::Kind::kArray;
  if (!message || frame.items.size() != kFrameItems || frame.items[0].as_text() != "pawl")
    return std::nullopt;
  const auto kind = kind_from_text(frame.items[1].as_text().value_or(""));
  const auto id = event_id_from_text(frame.items[2].as_text().value_or(""));
  const auto lock = frame.items[3].as_text();
  if (!kind || !id || !lock) return std::nullopt;
  const Value& map = frame.items[4];
  EventPush event;
  event.kind = *kind;
  event.id = *id;
  event.lock = *lock;
  event.token = Token{number_in(map, "token")};
  event.mode = text_in(map, "mode");
  event.owner = text_in(map, "owner");
  event.how = text_in(map, "how");
  event.reason = text_in(map, "reason");
  event.at = UnixMs{number_in(map, "at")};
  if (event.token.value > limits::kTokenMax) return std::nullopt;
  return event;
}

}  // namespace pawl::wire
