// The store: puts and deletes of bytes, in batches that are durable as a whole or not at all. It
// knows nothing of locks.
//
//   store.load(visitor);                            // once, before anything else
//   Batch batch;  batch.put(key, value);  batch.erase(other);  batch.cover(token);
//   store.submit(batch, id, sink);                  // sink.durable(id), now or in a later pump(), in the order submitted
//
// High water: besides its records a store keeps one number that only grows, synced in a place of
// its own before any batch that covers a greater one is written. It survives even a lost tail of
// the records, so that what was numbered once is never numbered again (design rule 10).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/batch.h"
#include "base/types.h"
#include "base/waker.h"
#include "pawl/result.h"

namespace pawl::store {

// Sees each live record once, in no promised order.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // How many records are about to come, if known (0 otherwise): a chance to reserve room.
  virtual void expect(std::uint64_t /*records*/) {}
  // An error stops the load: the store holds what this version cannot read.
  virtual Result<void> record(std::string_view key, std::string_view value) = 0;
};

// What a store knows about itself once loaded.
struct Loaded {
  Incarnation incarnation;
  std::uint64_t high_water = 0;  // Every number used before is <= this. Exact after a clean stop.
  std::uint64_t sequence =
      0;               // Of the last batch; the next one gets sequence + 1. Never goes back.
  bool fresh = false;  // This store was created just now.
  bool clean = false;  // The last run closed it properly.
};

// A copy of everything durable, for the day the store is lost. The store only carries the last
// three for whoever restores it.
struct BackupOrder {
  std::string directory;  // Absolute; not there yet, but its parent is.
  Millis wait{0};         // How long the restored service must grant nothing.
  UnixMs at;              // For people.
  std::string writer;     // For people: who made it.
};
struct BackupDone {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t sequence = 0;     // Of the last batch in it.
  std::uint64_t last_number = 0;  // The greatest number used by then.
};

// What a store that lives on a volume knows about its size. All in bytes.
struct Space {
  std::uint64_t free = 0;    // When it was last looked at, about a second ago.
  std::uint64_t needed = 0;  // Below so much free space has_room() is false.
  std::uint64_t volume_needed =
      0;  // Its own files and the free space together: with less it can run full by itself.
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void durable(BatchId batch) = 0;
  // The batch's fate, and so the store's, is unknown. The process must end without another answer.
  virtual void failed(BatchId batch, const Error& error) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // Visits every live record. Call once, before the first submit. An error names file and offset;
  // nothing was changed.
  virtual Result<Loaded> load(Visitor& visitor) = 0;

  // Makes `batch` durable. Exactly one of the sink's calls follows for each batch, in order of
  // submission, inside submit() or pump(): a store that commits inline makes it before this returns.
  // The batch may be reused once this returns.
  virtual void submit(const Batch& batch, BatchId id, Sink& sink) = 0;

  // Makes the sink's calls for the batches that were completed since, on the caller's thread. For a
  // store that commits inline there are none.
  virtual void pump(Sink& /*sink*/) {}
  // `waker` is woken, from any thread, when pump() or finished_backup() has something new; nullptr:
  // no longer. It outlives the store, or is taken back before. Before anything is submitted.
  virtual void wake_with(Waker* /*waker*/) {}

  // False when space is short: refuse what would grow the store; renewals, releases and expiries
  // still fit. Never false for a store that has failed, whose next batch reports the failure.
  virtual bool has_room() = 0;

  // Begins a copy of everything submitted so far; it takes none of the caller's time. At the end
  // there is a directory that is whole and was read back, or none. An error here: nothing was
  // begun; kBusy: one is under way.
  virtual Result<void> begin_backup(const BackupOrder& /*order*/) {
    return Error{Code::kInvalid,
                 std::string("a ") + std::string(kind()) + " store cannot be backed up"};
  }
  // How the one that was begun ended, once. Of an error: kUnavailable: no space. kInvalid, kDenied:
  // the directory cannot be used, or this store is damaged. kUnknown: the disk failed.
  virtual std::optional<Result<BackupDone>> finished_backup() { return std::nullopt; }

  // Nothing for a store that no volume can be too small for. After load().
  [[nodiscard]] virtual std::optional<Space> space() const { return std::nullopt; }

  // Records that everything is written and `high_water` is exact. No submit may follow.
  virtual Result<void> close() = 0;

  // For STATUS: "journal", "memory".
  [[nodiscard]] virtual std::string_view kind() const = 0;
};

}  // namespace pawl::store
