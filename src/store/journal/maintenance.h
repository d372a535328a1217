// The journal's work beside the loop: prewriting spare segments, making checkpoints, freeing the
// segments that they cover, and watching the free space.
//
// Two threads: the loop calls the functions of the first group, one other thread (or a simulator,
// between turns) those of the second. `work_mutex_` is held for one bounded step, and by the loop
// only when it must do such a step itself; `handover_mutex_` is held for moments. Lock order: work,
// then handover.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/file.h"
#include "store/journal/checkpoint_job.h"
#include "store/journal/pinned_files.h"
#include "store/journal/segment.h"
#include "store/journal/settings.h"
#include "store/journal/small_files.h"
#include "store/store.h"

namespace pawl::store::journal {

// A segment that is prewritten and durable under its name, but not begun.
struct Spare {
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;
  std::unique_ptr<File> file;  // Null: there was no file descriptor for it yet.
};

// What recovery found that concerns maintenance.
struct Inventory {
  std::optional<std::uint64_t> checkpoint;
  std::vector<ClosedSegment> closed;  // After the checkpoint.
  std::deque<Spare> spares;
  std::uint64_t next_segment = 0;  // The first id that has no file yet.
  // Segments of the usual size that the checkpoint covers; their files may be recycled.
  std::vector<std::uint64_t> obsolete;
};

class Maintenance {
 public:
  Maintenance(Files& files, std::string directory, const Identity& identity,
              const Settings& settings, Inventory inventory);

  // --- The loop's thread -------------------------------------------------------------------------
  // Returns the next segment, open, with room for a record of `record_bytes`. If none is ready it
  // is made now, which is slow but correct. kUnavailable: not now; call it again later.
  Result<Spare> take_spare(std::uint64_t record_bytes);
  // Adds the segment that was active until now.
  void add_closed(const ClosedSegment& closed);
  // Frees the space of one file that can be made again later: a segment to be recycled, or else the
  // last spare. kUnavailable if there is none.
  Result<void> release_reserved_space();
  // False when space is short. True again once a step has failed: the caller must go on to its next
  // batch, which reports the failure. Refusing requests for lack of space would hide the failure as
  // long as nothing else is written.
  [[nodiscard]] bool has_room() const { return failed() || room_.load(std::memory_order_relaxed); }
  // True for good once a step has failed for another reason than space: the disk can no longer be
  // trusted.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Why. Only if failed().
  [[nodiscard]] Error failure() const;
  [[nodiscard]] Space space() const;
  // How many times check_space() has measured: what failed for lack of space is worth another
  // attempt after the next time.
  [[nodiscard]] std::uint64_t space_checks() const {
    return space_checks_.load(std::memory_order_relaxed);
  }
  // `wake` is called on the loop's thread when there may be new work. Set it before the other
  // thread starts; clear it after that thread has ended.
  void on_work(std::function<void()> wake) { wake_ = std::move(wake); }
  // Steps do nothing from now on; unfinished files are removed.
  void stop();
  // Opens the files that a checkpoint of all closed segments and of `active`, the durable part of
  // the segment in use, would be made from. Checkpoints go on, and these files may be removed, but
  // none is recycled until unpin(), which any thread may call. kUnavailable: no file descriptor.
  Result<CheckpointSource> pin(const ClosedSegment& active, PinnedFiles& pinned);
  void unpin();
  // A backup has found that the files of a pin() are damaged. Any thread may call it.
  void report_damage(const Error& error);
  // True when the files of the store turned out to be damaged: then the loop,
  // which has the whole state in memory, is asked for it.
  [[nodiscard]] bool wants_state() const { return wants_state_.load(std::memory_order_acquire); }
  // Makes a checkpoint of all closed segments from memory (see CheckpointJob).
  void checkpoint_from(const Batch& state, std::uint64_t covered);
  // What was found, if anything.
  [[nodiscard]] Damage damage_found() const;

  // --- The other thread --------------------------------------------------------------------------
  // Does one bounded piece of work; returns false if there was none.
  bool step();
  // Measures the free space, and resumes work that had stopped for lack of it. Call about once a
  // second.
  void check_space();

 private:
  // A segment that is being prewritten under a temporary name.
  struct Prewrite {
    std::uint64_t segment = 0;
    std::uint64_t bytes = 0;
    std::uint64_t written = 0;
    std::unique_ptr<File> file;
  };

  // Whether one kind of work lacks space, or another resource.
  struct Shortage {
    bool lasts = false;    // It failed, and has not succeeded since.
    bool pausing = false;  // It is not tried before the next check_space().
    void begin() { lasts = pausing = true; }
    void end() { lasts = pausing = false; }
  };

  // All of these with work_mutex_ held.
  Result<bool> do_step();
  Result<void> step_spare();
  Result<void> recycle();
  Result<void> begin_prewrite(std::uint64_t segment, std::uint64_t bytes);
  Result<void> step_prewrite();
  Result<void> finish_prewrite();
  void abandon_prewrite();
  Result<Spare> make_oversized(std::uint64_t bytes);
  // The handle of a spare, or null without a file descriptor for it.
  Result<std::unique_ptr<File>> open_spare(std::uint64_t segment);
  Result<void> step_checkpoint();
  void ask_for_state();
  void release_covered();
  // Recycles or removes one file that the newest checkpoint covers.
  Result<void> free_one();
  void record_failure(const Error& error);
  void record_shortage(Shortage& shortage, const Error& error);
  void update_room();
  [[nodiscard]] std::uint64_t space_needed() const;
  [[nodiscard]] bool spares_are_short();
  [[nodiscard]] bool checkpoint_is_due();
  void add_spare(Spare spare);
  [[nodiscard]] std::string segment_path(std::uint64_t segment) const;

  // Constant after construction.
  Files& files_;
  const std::string directory_;
  const Identity identity_;
  const Settings settings_;
  std::function<void()> wake_;

  std::mutex work_mutex_;  // Guards the following fields.
  std::uint64_t next_segment_;
  std::vector<std::uint64_t> recyclable_;
  std::optional<Prewrite> prewrite_;
  std::optional<CheckpointJob> job_;
  // What the newest checkpoint covers and is still there.
  struct Covered {
    std::string name;
    std::optional<std::uint64_t> segment;  // Set if it may be recycled.
  };
  std::vector<Covered> covered_;
  Shortage spare_shortage_;
  Shortage checkpoint_shortage_;
  bool enough_space_ = true;  // At the last check_space().
  bool stopped_ = false;

  mutable std::mutex handover_mutex_;  // Guards the following fields.
  std::deque<Spare> spares_;
  // The checkpoint and the segments after it: the two change together.
  std::optional<std::uint64_t> checkpoint_;
  std::vector<ClosedSegment> closed_;
  // Not to be recycled, because a backup reads them.
  std::vector<std::uint64_t> pinned_;
  std::optional<Error> failure_;
  Damage damage_;
  std::string short_of_;

  // Written with handover_mutex_ held, read by any thread.
  std::atomic<bool> wants_state_ = false;

  // Written with work_mutex_ held, read by any thread.
  std::atomic<bool> failed_ = false;
  std::atomic<bool> room_ = true;
  std::atomic<std::uint64_t> space_checks_ = 1;
  std::atomic<std::uint64_t> free_ = 0;
  std::atomic<std::uint64_t> space_needed_ = 0;
};

// Creates `segment-<segment>.log`, filled with zeros and durable under its name, in one call.
Result<void> prewrite_segment(Files& files, const std::string& directory, std::uint64_t segment,
                              std::uint64_t bytes);

}  // namespace pawl::store::journal
