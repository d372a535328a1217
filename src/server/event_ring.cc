#include "server/event_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "server/reports.h"

namespace pawl::server {
namespace {

constexpr std::string_view kTooMany = "more happened at once than can be told one by one";

wire::EventKind told(core::EventKind kind) {
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
  }
  return wire::EventKind::kReset;
}

}  // namespace

// The texts are left as they come from the allocator: pages that no event has reached cost nothing.
EventRing::EventRing(Bounds bounds) : bounds_(bounds), texts_(new char[bounds.bytes]) {
  PAWL_ASSERT(std::has_single_bit(bounds_.events) && std::has_single_bit(bounds_.bytes));
}

void EventRing::start(Incarnation incarnation, std::uint64_t sequence) {
  PAWL_ASSERT(end_ == 0);
  incarnation_ = incarnation;
  sequence_ = sequence;
  forgotten_ =
      (sequence << kPlaceBits) | kPlaceMask;  // No event has this place, so none of before is taken for it.
}

void EventRing::append(BatchId batch, const core::Output& output) {
  ++sequence_;
  if (output.events.empty()) return;
  Slot slot;
  slot.number = sequence_ << kPlaceBits;
  const bool fits = output.events.size() <= std::min<std::size_t>(bounds_.events, kPlaceMask) &&
                    output.text.size() <= bounds_.bytes;
  if (!fits) {
    slot.text = texts_end_;
    slot.event.after = batch;
    slot.reset = true;
    return push(slot);
  }
  slot.text = keep(output.text);
  for (const core::Event& event : output.events) {
    PAWL_ASSERT(event.after == batch);
    slot.event = event;
    push(slot);
    ++slot.number;
  }
}

void EventRing::publish(BatchId durable) {
  while (published_ < end_ && slot(published_).event.after <= durable) ++published_;
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
  const core::Event& event = found.event;
  view.kind = told(event.kind);
  view.lock = text(found, event.lock_at, event.lock_size);
  view.token = event.token;
  if (event.kind != core::EventKind::kRaised) view.mode = mode_text(event.mode);
  view.owner = text(found, event.owner_at, event.owner_size);
  if (event.ending) view.how = to_text(*event.ending);
  view.reason = text(found, event.reason_at, event.reason_size);
  view.at = event.wall;
  return view;
}

std::string_view EventRing::lock_at(Position position) const {
  PAWL_ASSERT(position >= first_ && position < published_);
  const Slot& found = slot(position);
  return text(found, found.event.lock_at, found.event.lock_size);
}

wire::EventId EventRing::id_before(Position position) const {
  PAWL_ASSERT(position >= first_ && position <= published_);
  return {incarnation_, number_before(position)};
}

std::optional<EventRing::Position> EventRing::after(const wire::EventId& id) const {
  if (id.incarnation != incarnation_) return std::nullopt;
  Position low = first_,
           high = published_;  // The answer is the one p in here with number_before(p) == n, if any.
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
  return {texts_.get() + (slot.text & (bounds_.bytes - 1)) + at, size};
}

// In one piece: what does not fit before the end begins at the start again.
std::uint64_t EventRing::keep(std::string_view text) {
  const std::uint64_t left = bounds_.bytes - (texts_end_ & (bounds_.bytes - 1));
  if (text.size() > left) texts_end_ += left;
  const std::uint64_t begin = texts_end_;
  texts_end_ += text.size();
  while (first_ < end_ && slot(first_).text + bounds_.bytes < texts_end_) forget_oldest();
  if (!text.empty()) std::memcpy(texts_.get() + (begin & (bounds_.bytes - 1)), text.data(), text.size());
  return begin;
}

void EventRing::push(const Slot& slot) {
  if (end_ - first_ == bounds_.events) forget_oldest();
  const std::size_t index = end_ & (bounds_.events - 1);
  if (index == slots_.size()) {
    slots_.push_back(slot);
  } else {
    slots_[index] = slot;
  }
  ++end_;
}

void EventRing::forget_oldest() {
  forgotten_ = slot(first_).number;
  ++first_;
  published_ = std::max(published_, first_);
}

}  // namespace pawl::server
