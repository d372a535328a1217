#include "server/event_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "server/reports.h"

namespace pawl::server {
namespace {

static_assert(std::max({limits::kLockNameMax, limits::kOwnerMax, limits::kReasonMax}) <=
              UINT16_MAX);

constexpr std::string_view kTooMany = "more happened at once than can be sent one by one";

wire::EventKind to_wire(core::EventKind kind) {
  switch (kind) {
    case core::EventKind::kGranted:
      return wire::EventKind::kGranted;
    case core::EventKind::kReleased:
      return wire::EventKind::kReleased;
    case core::EventKind::kExpired:
      return wire::EventKind::kExpired;
    case core::EventKind::kBreaking:
      return wire::EventKind::kBreaking;
    case core::EventKind::kBroken:
      return wire::EventKind::kBroken;
    case core::EventKind::kRaised:
      return wire::EventKind::kRaised;
    case core::EventKind::kReleaseWanted:
      return wire::EventKind::kReleaseWanted;
  }
  return wire::EventKind::kReset;
}

}  // namespace

// Both are left as they come from the allocator: pages that no event has reached cost nothing.
EventRing::EventRing(Bounds bounds)
    : events_mask_(bounds.events - 1),
      bytes_mask_(bounds.bytes - 1),
      slots_(std::make_unique_for_overwrite<Slot[]>(bounds.events)),
      texts_(std::make_unique_for_overwrite<char[]>(bounds.bytes)) {
  PAWL_ASSERT(std::has_single_bit(bounds.events) && std::has_single_bit(bounds.bytes));
}

void EventRing::start(Incarnation incarnation, std::uint64_t sequence) {
  first_ = published_ = end_ = texts_end_ = 0;
  incarnation_ = incarnation;
  sequence_ = sequence;
  forgotten_ = (sequence << kPlaceBits) |
               kPlaceMask;  // No event has this place, so none of before is taken for it.
}

// In one piece: what does not fit before the end begins at the start again.
inline std::uint64_t EventRing::keep(std::string_view text) {
  std::uint64_t begin = texts_end_;
  if ((begin & bytes_mask_) + text.size() > bytes_mask_ + 1) begin = (begin | bytes_mask_) + 1;
  texts_end_ = begin + text.size();
  while (first_ < end_ && slot(first_).text + bytes_mask_ + 1 < texts_end_) forget_oldest();
  std::memcpy(texts_.get() + (begin & bytes_mask_), text.data(), text.size());
  return begin;
}

// The next one in order; the caller fills all of it.
inline EventRing::Slot& EventRing::new_slot() {
  if (end_ - first_ > events_mask_) forget_oldest();
  return slots_[end_++ & events_mask_];
}

void EventRing::append(BatchId batch, const core::Output& output) {
  ++sequence_;
  if (output.events.empty()) return;
  append_events(batch, output, Numbers::kNew);
}

void EventRing::append_unstored(BatchId batch, const core::Output& output) {
  if (!output.events.empty()) append_events(batch, output, Numbers::kOfTheEventBefore);
}

void EventRing::append_events(BatchId batch, const core::Output& output, Numbers numbers) {
  const bool stored = numbers == Numbers::kNew;
  std::uint64_t number = stored ? sequence_ << kPlaceBits : number_before(end_);
  if (output.events.size() > std::min(events_mask_ + 1, kPlaceMask) ||
      output.text.size() > bytes_mask_ + 1) {
    return append_reset(batch, number);
  }
  const std::uint64_t text = keep(output.text);
  for (const core::Event& event : output.events) {
    Slot& slot = new_slot();
    slot.number = number;
    if (stored) ++number;
    slot.text = text;
    slot.after = batch.value;
    slot.token = event.token.value;
    slot.wall = event.wall.value;
    slot.lock_at = event.lock_at;
    slot.owner_at = event.owner_at;
    slot.reason_at = event.reason_at;
    slot.lock_size = static_cast<std::uint16_t>(event.lock_size);
    slot.owner_size = static_cast<std::uint16_t>(event.owner_size);
    slot.reason_size = static_cast<std::uint16_t>(event.reason_size);
    slot.kind = event.kind;
    slot.mode = event.mode;
    slot.ending = event.ending ? static_cast<std::uint8_t>(*event.ending) : std::uint8_t{0};
    slot.reset = false;
  }
}

void EventRing::append_reset(BatchId batch, std::uint64_t number) {
  Slot& slot = new_slot();
  slot = Slot{};
  slot.number = number;
  slot.text = texts_end_;
  slot.after = batch.value;
  slot.reset = true;
}

wire::EventView EventRing::at(Position position) const {
  PAWL_ASSERT(position >= first_ && position < published_);
  const Slot& found = slot(position);
  wire::EventView view;
  view.id = {incarnation_, found.number};
  if (found.reset) {
    view.reason = kTooMany;
    return view;
  }
  view.kind = to_wire(found.kind);
  view.lock = text(found, found.lock_at, found.lock_size);
  view.token = Token{found.token};
  if (found.kind != core::EventKind::kRaised) view.mode = mode_text(found.mode);
  view.owner = text(found, found.owner_at, found.owner_size);
  if (found.ending != 0) view.how = to_text(static_cast<core::Ending>(found.ending));
  view.reason = text(found, found.reason_at, found.reason_size);
  view.at = UnixMs{found.wall};
  return view;
}

std::string_view EventRing::lock_at(Position position) const {
  PAWL_ASSERT(position >= first_ && position < published_);
  const Slot& found = slot(position);
  return text(found, found.lock_at, found.lock_size);
}

wire::EventId EventRing::id_before(Position position) const {
  PAWL_ASSERT(position >= first_ && position <= published_);
  return {incarnation_, number_before(position)};
}

std::optional<EventRing::Position> EventRing::after(const wire::EventId& id) const {
  if (id.incarnation != incarnation_) return std::nullopt;
  // The answer is the first p in here with number_before(p) == n, if any. There are several when
  // events follow that were not stored; those are sent again.
  Position low = first_, high = published_;
  while (low < high) {
    const Position middle = low + (high - low) / 2;
    if (number_before(middle) < id.n) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (number_before(low) != id.n) return std::nullopt;
  return low;
}

std::uint64_t EventRing::number_before(Position position) const {
  return position == first_ ? forgotten_ : slot(position - 1).number;
}

std::string_view EventRing::text(const Slot& slot, std::uint32_t at, std::uint32_t size) const {
  return {texts_.get() + (slot.text & bytes_mask_) + at, size};
}

void EventRing::forget_oldest() {
  forgotten_ = slot(first_).number;
  ++first_;
  published_ = std::max(published_, first_);
}

}  // namespace pawl::server
