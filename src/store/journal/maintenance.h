// The journal's work beside the loop: prewriting segments ahead, checkpoints, freeing what they
// cover, watching space.
//
// Two threads: the loop calls the functions of the first group, one helper (a thread, or a
// simulator between turns) those of the second. `work_mutex_` is held for one bounded step and by
// the loop only when it must do such work itself; `handover_mutex_` for moments. Order: work, then
// handover.
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
#include "store/journal/identity.h"
#include "store/journal/segment.h"
#include "store/journal/settings.h"
#include "store/store.h"

namespace pawl::store::journal {

// A segment that is prewritten and durable under its name, but not begun.
struct Spare {
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;
  std::unique_ptr<File> file;
};

// What recovery found that concerns the housekeeper.
struct Inventory {
  std::optional<std::uint64_t> checkpoint;
  std::vector<ClosedSegment> closed;  // After the checkpoint.
  std::deque<Spare> spares;
  std::uint64_t next_segment = 0;  // The first id that has no file yet.
  std::vector<std::uint64_t>
      obsolete;  // Covered by the checkpoint, of the usual size: may be recycled.
};

class Housekeeper {
 public:
  Housekeeper(Files& files, std::string directory, const Identity& identity,
              const Settings& settings, Inventory inventory);

  // --- The loop's thread -------------------------------------------------------------------------
  // The next segment, with room for a record of `record_bytes`. Makes it now where
  // it is not ready: slow, but correct.
  Result<Spare> take_spare(std::uint64_t record_bytes);
  void add_closed(const ClosedSegment& closed);
  // Gives the space of one file back that can wait: of a segment to be recycled, or else of the
  // last one written ahead. kUnavailable when there is none.
  Result<void> give_up_space();
  // True again once background work failed: the caller must go on to the next batch, which reports
  // the failure. Refusing requests for lack of space would hide it for ever where nothing else is
  // written.
  [[nodiscard]] bool has_room() const { return failed() || room_.load(std::memory_order_relaxed); }
  // Set for good once background work failed for another reason than space: the disk is no longer
  // to be trusted.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Error failure() const;
  [[nodiscard]] Space space() const;
  // Called from the loop's thread whenever there may be new work. Set before the helper starts,
  // cleared after it ended.
  void on_work(std::function<void()> wake) { wake_ = std::move(wake); }
  // No step does anything afterwards.
  void stop();
  // What a checkpoint of everything closed would be made from. None of it is freed, and no
  // checkpoint made, until unpin(), which another thread may call.
  CheckpointSource pin();
  void unpin();

  // --- The helper --------------------------------------------------------------------------------
  // Does one bounded piece of work; false when there was none.
  bool step();
  // Looks at the free space, and lets work that was stopped by its lack go on. About once a second.
  void check_space();

 private:
  // A segment being prewritten under a temporary name.
  struct Prewrite {
    std::uint64_t segment = 0;
    std::uint64_t bytes = 0;
    std::uint64_t written = 0;
    std::unique_ptr<File> file;
  };

  // All with work_mutex_ held.
  Result<bool> do_step();
  Result<void> step_spare();
  Result<void> recycle();
  Result<void> begin_prewrite(std::uint64_t segment, std::uint64_t bytes);
  Result<void> step_prewrite();
  Result<void> finish_prewrite();
  void abandon_prewrite();
  Result<Spare> make_oversized(std::uint64_t bytes);
  Result<void> step_checkpoint();
  Result<void> free_covered();
  void stumble(const Error& error);
  [[nodiscard]] std::uint64_t space_needed() const;
  [[nodiscard]] bool spares_are_short();
  [[nodiscard]] bool may_checkpoint();
  void add_spare(Spare spare);
  [[nodiscard]] std::string segment_path(std::uint64_t segment) const;

  // Constant after construction.
  Files& files_;
  const std::string directory_;
  const Identity identity_;
  const Settings settings_;
  std::function<void()> wake_;

  std::mutex work_mutex_;
  std::uint64_t next_segment_;
  std::vector<std::uint64_t> recyclable_;
  std::optional<Prewrite> prewrite_;
  std::optional<CheckpointJob> job_;
  bool spares_blocked_ = false;      // For lack of space,
  bool checkpoint_blocked_ = false;  // until check_space() finds some.
  bool stopped_ = false;

  mutable std::mutex handover_mutex_;
  std::deque<Spare> spares_;
  std::optional<std::uint64_t> checkpoint_;
  std::vector<ClosedSegment> closed_;  // After the checkpoint: the two change together.
  bool pinned_ = false;
  std::optional<Error> failure_;

  std::atomic<bool> failed_ = false;
  std::atomic<bool> room_ = true;
  std::atomic<std::uint64_t> free_ = 0;          // What space() reports,
  std::atomic<std::uint64_t> space_needed_ = 0;  // for any thread.
};

// Makes `segment-<segment>.log` full of zeros, durable under its name, in one go.
Result<void> prewrite_segment(Files& files, const std::string& directory, std::uint64_t segment,
                              std::uint64_t bytes);

}  // namespace pawl::store::journal
