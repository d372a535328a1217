#include "store/journal/journal_threads.h"

#include <chrono>

namespace pawl::store::journal {
namespace {
constexpr std::chrono::seconds kSpaceCheckInterval{1};
}  // namespace

MaintenanceThread::MaintenanceThread(Journal& journal) : journal_(journal) {
  journal_.on_work([this] { wake(); });
  thread_ = std::thread([this] { run(); });
}

MaintenanceThread::~MaintenanceThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  journal_.on_work(nullptr);
}

void MaintenanceThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    work_ = true;
  }
  changed_.notify_one();
}

void MaintenanceThread::run() {
  auto space_checked = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool stepping = work_;
    if (!stepping)
      changed_.wait_until(lock, space_checked + kSpaceCheckInterval,
                          [this] { return stop_ || work_; });
    if (stop_) return;
    work_ = false;
    lock.unlock();
    bool more = journal_.background_step();
    if (const auto now = std::chrono::steady_clock::now();
        now - space_checked >= kSpaceCheckInterval) {
      journal_.check_space();
      space_checked = now;
      more = true;  // Work that lacked space may continue now.
    }
    lock.lock();
    work_ = work_ || more;
  }
}

BackupThread::BackupThread(Journal& journal) : journal_(journal) {
  journal_.on_backup([this] {
    {
      const std::lock_guard lock(mutex_);
      work_ = true;
    }
    changed_.notify_one();
  });
  thread_ = std::thread([this] { run(); });
}

BackupThread::~BackupThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  journal_.on_backup(nullptr);
}

void BackupThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || work_; });
    if (stop_) return;
    lock.unlock();
    const bool more = journal_.backup_step();
    lock.lock();
    work_ = more;
  }
}

}  // namespace pawl::store::journal
