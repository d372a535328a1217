#include "store/journal/backup_thread.h"

namespace pawl::store::journal {

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
