#include "store/journal/backup_desk.h"

#include <utility>

#include "base/assert.h"

namespace pawl::store::journal {

void BackupDesk::begin(std::unique_ptr<BackupJob> job, std::function<void()> release) {
  PAWL_ASSERT(!busy_);
  busy_ = true;
  const std::lock_guard lock(mutex_);
  ordered_ = Order{std::move(job), std::move(release)};
}

std::optional<Result<BackupDone>> BackupDesk::finished() {
  if (!busy_) return {};
  const std::lock_guard lock(mutex_);
  if (!finished_) return {};
  busy_ = false;
  return std::exchange(finished_, std::nullopt);
}

bool BackupDesk::step() {
  if (!under_way_) {
    const std::lock_guard lock(mutex_);
    under_way_ = std::exchange(ordered_, std::nullopt);
    if (!under_way_) return false;
  }
  const auto stepped = under_way_->job->step();
  if (stepped && !*stepped) return true;
  under_way_->release();
  under_way_.reset();
  {
    const std::lock_guard lock(mutex_);
    finished_ = stepped ? Result<BackupDone>(**stepped) : Result<BackupDone>(stepped.error());
  }
  if (waker_ != nullptr) waker_->wake();
  return true;
}

void BackupDesk::stop() {
  if (under_way_)
    (void)under_way_->job->abandon();  // Tidiness only: the next backup there removes it, too.
  under_way_.reset();
  const std::lock_guard lock(mutex_);
  ordered_.reset();
}

}  // namespace pawl::store::journal
