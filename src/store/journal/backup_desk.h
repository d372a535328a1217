// Where the loop orders a backup and a thread of its own makes it (backup_thread.h): the directory
// is the user's choice, and may be a network disk that hangs; neither the loop nor the housekeeper
// may wait for it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "store/journal/backup_job.h"
#include "store/store.h"

namespace pawl::store::journal {

class BackupDesk {
 public:
  // --- The loop's thread -------------------------------------------------------------------------
  // From begin() until finished() has told its end.
  [[nodiscard]] bool busy() const { return busy_; }
  // `release` is called by the helper when the job no longer reads its source, before anyone hears
  // of its end.
  void begin(std::unique_ptr<BackupJob> job, std::function<void()> release);
  [[nodiscard]] std::optional<Result<BackupDone>> finished();
  // Woken by the helper when finished() has an outcome. Before the helper runs.
  void wake_with(Waker* waker) { waker_ = waker; }
  // Gives up what is under way. No step may run.
  void stop();

  // --- The helper --------------------------------------------------------------------------------
  // Does one bounded piece; false when there is nothing to do.
  bool step();

 private:
  struct Order {
    std::unique_ptr<BackupJob> job;
    std::function<void()> release;
  };
  Waker* waker_ = nullptr;          // Constant while the helper runs.
  bool busy_ = false;               // The loop's thread only.
  std::optional<Order> under_way_;  // The helper only.

  std::mutex mutex_;
  std::optional<Order> ordered_;
  std::optional<Result<BackupDone>> finished_;
};

}  // namespace pawl::store::journal
