// The last events, numbered, for OBSERVE: events are sent from here, and FROM finds again what was
// sent before.
//
//   ring.start(loaded.incarnation, loaded.sequence);
//   ring.append(batch, core.output());  // every batch, in order, events or not
//   store.submit(…);
//   on durable(batch):  ring.publish(batch);  // only now can anyone see them
//   for (Position p = …; p < ring.end(); ++p) send(ring.at(p));
//
// A position counts events of this run. The number that clients see is sequence × 2^16 + place in
// the batch, where sequence is that of the batch in the store: it grows over restarts without a
// record of its own. It is text on the wire, so nothing breaks when it passes 2^53 after 2^37
// batches.
//
// Bounded by count and by bytes; the oldest go first. Filling it costs one copy per batch and a few
// words per event, because it is filled also while nobody observes. A batch that has more events
// than the ring or the numbers have room for becomes one reset. No I/O, no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/limits.h"
#include "base/types.h"
#include "core/outputs.h"
#include "wire/events.h"

namespace pawl::server {

class EventRing {
 public:
  using Position = std::uint64_t;

  // Powers of two, so that places are found without a division.
  struct Bounds {
    std::size_t events = limits::kEventsKept;
    std::size_t bytes = limits::kEventBytesKept;
  };

  EventRing() : EventRing(Bounds{}) {}
  explicit EventRing(Bounds bounds);

  // Empties it. `sequence` is that of the store's last batch: every event of an earlier run is older than any
  // of this one.
  void start(Incarnation incarnation, std::uint64_t sequence);
  void append(BatchId batch, const core::Output& output);
  // Events that belong to no batch, because they are not stored. They can be seen once `batch`, the
  // last one before them, is durable, and have the number of the event before them: the store has
  // none for them, and a number of this run alone could come again after a restart.
  void append_unstored(BatchId batch, const core::Output& output);
  void publish(BatchId durable) {
    while (published_ < end_ && slot(published_).after <= durable.value) ++published_;
  }

  // The events that may be sent, because they are durable, are those in [first, end).
  [[nodiscard]] Position first() const { return first_; }
  [[nodiscard]] Position end() const { return published_; }
  // Its views are valid until the next append().
  [[nodiscard]] wire::EventView at(Position position) const;
  // Just what at(position).lock is.
  [[nodiscard]] std::string_view lock_at(Position position) const;
  // An observer that resumes from this id is sent the event at `position` next. first() <= position
  // <= end().
  [[nodiscard]] wire::EventId id_before(Position position) const;
  // The position behind this event; nothing when it is too old, or none of ours.
  [[nodiscard]] std::optional<Position> after(const wire::EventId& id) const;

 private:
  static constexpr int kPlaceBits = 16;
  static constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kPlaceBits) - 1;

  // A cache line. Without initial values: slots that no event has reached cost nothing.
  struct Slot {
    std::uint64_t number;
    std::uint64_t text;  // where the texts of its batch begin, counted like positions
    std::uint64_t after;
    std::uint64_t token;
    std::uint64_t wall;
    std::uint32_t lock_at, owner_at, reason_at;  // from `text`
    std::uint16_t lock_size, owner_size, reason_size;
    core::EventKind kind;
    Mode mode;
    std::uint8_t ending;  // 0: none
    bool reset;
  };
  static_assert(sizeof(Slot) == 64);

  [[nodiscard]] const Slot& slot(Position position) const {
    return slots_[position & events_mask_];
  }
  [[nodiscard]] Slot& new_slot();
  [[nodiscard]] std::uint64_t number_before(Position position) const;
  [[nodiscard]] std::string_view text(const Slot& slot, std::uint32_t at, std::uint32_t size) const;
  std::uint64_t keep(std::string_view text);
  enum class Numbers : std::uint8_t { kNew, kOfTheEventBefore };
  void append_events(BatchId batch, const core::Output& output, Numbers numbers);
  [[gnu::cold]] void append_reset(BatchId batch, std::uint64_t number);
  [[gnu::noinline]] void forget_oldest();

  const std::uint64_t events_mask_, bytes_mask_;  // the bounds, less 1
  Incarnation incarnation_;
  std::uint64_t sequence_ = 0;   // of the last batch appended
  std::uint64_t forgotten_ = 0;  // the greatest number before first_
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<char[]> texts_;
  std::uint64_t texts_end_ = 0;
  Position first_ = 0, published_ = 0, end_ = 0;
};

}  // namespace pawl::server
