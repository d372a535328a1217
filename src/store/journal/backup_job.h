// Makes one backup (backup.h) in bounded steps while the store keeps running.
//
// The job reads the old checkpoint, the closed segments, and the part of the active segment that
// was durable when the backup was requested; that part of the file never changes again. Closing the
// active segment first would use up a segment (64 MiB) per backup, and the loop would have to wait
// if no spare is ready.
//
// All or nothing: everything is written and synced in DIR.partial and read back, then DIR.partial
// is renamed to DIR. What an interrupted backup left in DIR.partial is removed first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/file.h"
#include "store/journal/backup.h"
#include "store/journal/checkpoint_job.h"
#include "store/store.h"

namespace pawl::store::journal {

class BackupJob {
 public:
  struct Facts {
    // The greatest number used by the batches in the backup.
    std::uint64_t last_number = 0;
    // Kept free if the backup is on the volume of the store, so that a backup cannot stop the
    // store.
    std::uint64_t space_reserve = 0;
  };
  // The last segment of `source` is the durable part of the active one. None of the files of
  // `source` may be removed until the job has ended.
  BackupJob(Files& files, CheckpointSource source, BackupOrder order, const Facts& facts);

  // Does one bounded piece of work. Returns the report once everything is done. After an error
  // nothing is left on the disk, or the detail says what is.
  Result<std::optional<BackupDone>> step();
  // Removes what an unfinished job wrote.
  Result<void> abandon();

 private:
  enum class Phase { kPrepare, kCopy, kVerify, kDone };

  Result<std::optional<BackupDone>> do_step();
  Result<void> prepare();
  Result<void> check_space();
  // Writes backup.meta, reads everything back and gives the backup its final name.
  Result<BackupDone> finish();

  Files& files_;
  const BackupOrder order_;
  const std::string partial_;
  const std::string data_directory_;
  const Identity identity_;
  const Facts facts_;
  CheckpointJob copy_;
  Phase phase_ = Phase::kPrepare;
  bool made_partial_ = false;
  bool shares_space_ = false;
};

// Holds at most one backup job. The loop's thread orders it, and a thread of its own runs it
// (BackupThread): the target directory is the user's choice and may be a network disk that hangs,
// so neither the loop nor maintenance may wait for it.
class BackupSlot {
 public:
  // --- The loop's thread -------------------------------------------------------------------------
  // True from begin() until finished() has returned the outcome.
  [[nodiscard]] bool busy() const { return busy_; }
  // `release` is called by the thread that runs the job once the job no longer reads its source,
  // before finished() returns the outcome. Not while busy().
  void begin(std::unique_ptr<BackupJob> job, std::function<void()> release);
  // Returns the outcome, once.
  [[nodiscard]] std::optional<Result<BackupDone>> finished();
  // Woken by the other thread when finished() has an outcome. Call it before that thread starts.
  void wake_with(Waker* waker) { waker_ = waker; }
  // Abandons the job. The other thread must have ended.
  void stop();

  // --- The thread that runs the job --------------------------------------------------------------
  // Does one bounded piece of work; returns false if there is nothing to do.
  bool step();

 private:
  struct Order {
    std::unique_ptr<BackupJob> job;
    std::function<void()> release;
  };
  Waker* waker_ = nullptr;        // Constant while the other thread runs.
  bool busy_ = false;             // Used by the loop's thread only.
  std::optional<Order> running_;  // Used by the other thread only.

  std::mutex mutex_;  // Guards all below.
  std::optional<Order> ordered_;
  std::optional<Result<BackupDone>> finished_;
};

}  // namespace pawl::store::journal
