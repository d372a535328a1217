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

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/file.h"
#include "store/journal/backup.h"
#include "store/journal/checkpoint_job.h"
#include "store/journal/pinned_files.h"
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
  // The last segment of `source` is the durable part of the active one. `files` can open every file
  // of `source` until the job has ended (pinned_files.h).
  BackupJob(Files& files, CheckpointSource source, BackupOrder order, const Facts& facts);

  // Does one bounded piece of work. Returns the report once everything is done. After an error
  // nothing is left on the disk, or the detail says what is.
  Result<std::optional<BackupDone>> step();
  // Removes what an unfinished job wrote.
  Result<void> abandon();
  // After an error of step(): a file of the store is damaged, missing or unreadable.
  [[nodiscard]] bool source_failed() const { return copy_.source_failed(); }

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

// One backup that was begun. The loop's thread and the thread that runs it share it: the target is
// the user's choice and may be a network disk that hangs for ever inside one system call, so
// neither the loop nor maintenance nor the end of the process may wait for it. A backup that is
// given up is left to its thread, which ends if the disk ever answers.
class BackupRun {
 public:
  // Each is called by either thread, and must not take long.
  struct Callbacks {
    std::function<void()> release;              // The backup has ended or is given up.
    std::function<void(const Error&)> damaged;  // A file of the store turned out to be damaged.
    std::function<void()> wake;                 // There is an outcome.
  };
  BackupRun(std::unique_ptr<PinnedFiles> files, std::unique_ptr<BackupJob> job,
            std::string directory, Callbacks callbacks);

  // --- The loop's thread -------------------------------------------------------------------------
  // The outcome, once there is one.
  [[nodiscard]] std::optional<Result<BackupDone>> outcome() const;
  [[nodiscard]] std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  // From now on nothing is called back, and there is no outcome.
  void give_up();
  // Ends it with an error, if no thread can run it.
  void fail(const Error& error);
  // Removes what it wrote. No thread may run it any more.
  void clean_up();
  [[nodiscard]] bool is_for(const std::string& directory) const;

  // --- The thread that runs it -------------------------------------------------------------------
  // Does one bounded piece of work; returns false when it has ended.
  bool step();

 private:
  const std::unique_ptr<PinnedFiles> files_;  // Used by the job.
  const std::unique_ptr<BackupJob> job_;      // Used by the thread that runs it.
  const std::string directory_;
  const Callbacks callbacks_;
  std::atomic<std::uint64_t> steps_ = 0;

  mutable std::mutex mutex_;  // Guards all below; held during callbacks.
  bool given_up_ = false;
  std::optional<Result<BackupDone>> outcome_;
};

}  // namespace pawl::store::journal
