// The store: puts and deletes of bytes, in batches that are durable as a whole or not at all. It
// knows nothing of locks.
//
//   store.load(visitor);             // once, before anything else
//   Batch batch;
//   batch.put(key, value);
//   batch.erase(other);
//   batch.cover(token);
//   store.submit(batch, id, sink);   // then sink.durable(id), now or in a later pump(), in order
//
// High water: besides its records a store keeps one number that only grows. It is synced in a place
// of its own before any batch that covers a greater number is written. It survives even if the last
// records are lost, so a number that was used once is never used again (design rule 10).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/batch.h"
#include "base/types.h"
#include "base/waker.h"
#include "pawl/result.h"

namespace pawl::store {

// Receives each live record once, in no particular order.
class Visitor {
 public:
  virtual ~Visitor() = default;

  // Called before the first record with the number of records to come, if known (else 0), so that
  // the visitor can reserve memory.
  virtual void expect(std::uint64_t /*records*/) {}

  // An error stops the load and is returned by it: the store holds something that this version
  // cannot read.
  virtual Result<void> record(std::string_view key, std::string_view value) = 0;
};

// What a store knows about itself once loaded.
struct Loaded {
  Incarnation incarnation;
  // Every number used before is <= this. Exact after a clean stop, else the end of the reserved
  // block.
  std::uint64_t high_water = 0;
  // The number of the last batch; the next one gets sequence + 1. Never decreases.
  std::uint64_t sequence = 0;
  // The store was created by this process.
  bool fresh = false;
  // The previous run closed the store properly.
  bool clean = false;
  // Of a store that several processes share: grows each time that one of them becomes active.
  std::uint64_t epoch = 0;
};

// The process that is active in a store that several share.
struct Active {
  // Where clients reach it, "host:port" or "host:port/HTTP port"; empty while that is not known.
  std::string address;
  std::uint64_t epoch = 0;
  Incarnation incarnation = {};  // Of the store; 0 while that is not known.

  // Its "host:port".
  [[nodiscard]] std::string_view resp() const {
    return std::string_view(address).substr(0, address.find('/'));
  }
};

// What a store that several processes share knows of them, and of what it is built on. For people:
// nothing is decided by it.
struct ClusterView {
  struct Node {
    std::string address = {};
    std::string role = {};  // active, standby; silent: it has not reported for a while
    std::uint64_t pid = 0;
    bool is_self = false;
  };
  struct Endpoint {
    std::string name = {};
    bool usable = false;
    bool leader = false;
    std::string version = {};
    // Why it is not usable, or should not be used; empty: all is well.
    std::string problem = {};
  };
  std::string name = {};  // of the cluster
  std::vector<Node> nodes = {};
  std::vector<Endpoint> endpoints = {};
  std::uint64_t round_trips = 0;  // that were answered
  std::uint64_t sends = 0;        // of them, those sent again included
  std::uint64_t troubles = 0;     // outcomes that were unknown, and endpoints that failed
  Nanos round_trip_time{0};       // of all that were answered
};

// A request for a copy of everything durable, for the case that the store is lost. `wait`, `at` and
// `writer` are only stored in the copy, for the restore.
struct BackupOrder {
  std::string directory;  // Absolute. Must not exist; its parent must.
  Millis wait{0};         // How long the restored service must grant nothing.
  UnixMs at;              // When it was requested, for people.
  std::string writer;     // The program that made it, for people.
};
struct BackupDone {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t sequence = 0;     // Of the last batch in the backup.
  std::uint64_t last_number = 0;  // The greatest number used up to that batch.
};

// The space of a store that lives on a volume. All in bytes.
struct Space {
  // Free space at the last check, about a second ago.
  std::uint64_t free = 0;
  // has_room() is false while less than this is free.
  std::uint64_t needed = 0;
  // The volume size at which the store's own files cannot fill the volume.
  std::uint64_t volume_needed = 0;
  // What has_room() lacked last, for people: bytes, inodes, a quota, file descriptors.
  std::string short_of{};
};

// Damage that the store found in its own files while it ran.
struct Damage {
  std::uint64_t found = 0;     // How many times.
  std::uint64_t repaired = 0;  // Equal to `found` once what was damaged is replaced.
  std::string what{};          // The last one: file, offset, and what is wrong there.
};

// Receives the outcome of each submitted batch.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void durable(BatchId batch) = 0;
  // Whether the batch is on the disk is unknown, and so is the state of the store. The process must
  // end without another answer.
  virtual void failed(BatchId batch, const Error& error) = 0;
  // Only of a store that several processes share, and only inside pump(): another one is active.
  // Whether the batches under way are stored is unknown, and no call follows for them. The process
  // need not end: it must forget what it had loaded, say nothing that rests on it, and may load
  // again once the store is_active(). Called again when yet another process has become active.
  virtual void deposed(const Active& /*active*/) {}

  // Only of a store that several processes share, only inside pump(), and only while this process
  // is not active: operations (base/batch.h) that another one has made durable, in order, so that
  // whoever takes over has their effect in memory already. An error ends the process: the store
  // holds something that this version cannot read.
  virtual Result<void> followed(std::string_view /*operations*/) { return {}; }
  // What was followed() so far is void; all of it comes again.
  virtual void follow_again() {}
};

// All functions are called by one thread, the loop's.
class Store {
 public:
  virtual ~Store() = default;

  // Visits every live record; none that Sink::followed() has told of. Call once, before the first
  // submit, while the store is_active(); and once more each time that it is so again. An error names
  // file and offset; the store was not changed.
  virtual Result<Loaded> load(Visitor& visitor) = 0;

  // Makes `batch` durable, while the store is ready(), as the next in its sequence: batches are
  // never joined, so what is numbered by them (events) never goes back. Exactly one call of the sink
  // follows for each batch, in submission order, inside submit() or pump(); a store that commits inline makes it before this returns,
  // unless it lacks space: then the batch waits for a later pump(). The
  // batch may be reused once this returns; `sink` must live until its call.
  virtual void submit(const Batch& batch, BatchId id, Sink& sink) = 0;

  // Calls the sink, on the caller's thread, for the batches that were completed since the last
  // call. A store that commits inline has none.
  virtual void pump(Sink& /*sink*/) {}
  // `waker` is woken, from any thread, when pump() or finished_backup() has something new. Call it
  // before the first submit(). nullptr: no longer. The waker outlives the store, or is taken back
  // before it ends.
  virtual void wake_with(Waker* /*waker*/) {}

  // False when space or another resource is short: refuse requests that would grow the store.
  // Renewals, releases and expiries still fit. Never false for a store that has failed, because its
  // next batch must be submitted to report the failure.
  virtual bool has_room() = 0;
  // Whether a grant may be applied now: has_room(), and the number that it takes is reserved, as
  // far as this can be known. May write.
  virtual bool prepare_grant() { return has_room(); }

  // What one batch may hold. Constant.
  [[nodiscard]] virtual BatchLimits batch_limits() const { return {}; }
  // False while as many batches are under way as the store takes at once. What changes meanwhile
  // belongs into the next one; the waker is woken when it may be submitted.
  [[nodiscard]] virtual bool ready() const { return true; }

  // --- A store that several processes share; one of them is active at a time -----------------------
  // Whether other processes may use it, too. Constant. If not, the rest of this part is not asked,
  // and pump() is called only while batches are under way.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  // Whether it is this process that may load and serve. It begins and ends inside pump(), which
  // reports the end by Sink::deposed(). A process that is not active should pump(), too.
  [[nodiscard]] virtual bool is_active() const { return true; }
  // Until this moment of CLOCK_BOOTTIME no other process can have become active, so what this one
  // has in memory is the truth (rule 12). Later nothing that rests on it may be said, until a
  // batch that is confirmed moves this on. The store wakes its waker then. For ever where no other
  // process can take the store.
  [[nodiscard]] virtual Nanos may_answer_until() const { return Nanos::max(); }
  // Gives the role to whoever takes it first. Call it while nothing is under way; no submit() may
  // follow, and Sink::deposed() does, once the store has confirmed.
  virtual void hand_over() {}
  // Nothing of a store that is not shared.
  [[nodiscard]] virtual std::optional<ClusterView> cluster() const { return std::nullopt; }

  // --- Damage ------------------------------------------------------------------------------------
  [[nodiscard]] virtual Damage damage() const { return {}; }
  // True when a part of what was stored cannot be read any more: the caller has it in memory, and
  // should pass it on.
  [[nodiscard]] virtual bool wants_state() const { return false; }
  // `state` has a put for every record that is live after the last batch submitted, which is
  // durable.
  virtual void take_state(const Batch& /*state*/) {}

  // --- Backups -----------------------------------------------------------------------------------
  // Begins a copy of everything submitted so far, on another thread. It ends with a directory that
  // is complete and was read back, or with none. An error here: nothing was begun (kBusy: a backup
  // is already in progress, or one that was given up still hangs; kUnavailable: not now, because
  // batches wait for space or there is no file descriptor).
  virtual Result<void> begin_backup(const BackupOrder& /*order*/) {
    return Error{Code::kInvalid,
                 std::string("a ") + std::string(kind()) + " store cannot be backed up"};
  }
  // The outcome of the backup that was begun, returned once; nothing while it is in progress.
  // Errors: kUnavailable: no space. kInvalid, kDenied: the directory cannot be used, or this store
  // is damaged. kUnknown: the disk failed.
  virtual std::optional<Result<BackupDone>> finished_backup() { return std::nullopt; }
  // Grows while a backup makes progress.
  [[nodiscard]] virtual std::uint64_t backup_steps() const { return 0; }
  // Gives up the backup in progress, because its disk does not answer: it has no outcome, and
  // leaves at most a directory DIR.partial.
  virtual void abandon_backup() {}

  // Nothing for a store that does not live on a volume. Call after load().
  [[nodiscard]] virtual std::optional<Space> space() const { return std::nullopt; }

  // Records that everything is written and that `high_water` is exact. No submit may follow.
  virtual Result<void> close() = 0;

  // For STATUS: "journal", "memory", "etcd".
  [[nodiscard]] virtual std::string_view kind() const = 0;
};

}  // namespace pawl::store
