#include "store/journal/journal_threads.h"

#include <chrono>
#include <string>
#include <system_error>

namespace pawl::store::journal {
namespace {
constexpr std::chrono::seconds kSpaceCheckInterval{1};
// How long a stop waits for a step of a backup; most take milliseconds.
constexpr std::chrono::seconds kBackupStopMax{2};
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

BackupThreads::BackupThreads(Journal& journal) : journal_(journal) {
  journal_.on_backup([this](const std::shared_ptr<BackupRun>& backup) {
    {
      const std::lock_guard lock(state_->mutex);
      ++state_->running;
    }
    try {
      std::thread([state = state_, backup] { run(state, backup); }).detach();
    } catch (const std::system_error& error) {
      backup->fail(Error{Code::kUnavailable, std::string("no thread for it: ") + error.what()});
      const std::lock_guard lock(state_->mutex);
      --state_->running;
    }
  });
}

BackupThreads::~BackupThreads() {
  (void)stop();
}

bool BackupThreads::stop() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  const bool ended =
      state_->changed.wait_for(lock, kBackupStopMax, [this] { return state_->running == 0; });
  lock.unlock();
  if (ended) {
    journal_.on_backup(nullptr);  // What an unfinished one wrote, close() removes.
  } else {
    journal_.on_backup([](const std::shared_ptr<BackupRun>& /*backup*/) {});
  }
  return ended;
}

void BackupThreads::run(const std::shared_ptr<State>& state,
                        const std::shared_ptr<BackupRun>& backup) {
  const auto stopped = [&] {
    const std::lock_guard lock(state->mutex);
    return state->stop;
  };
  while (!stopped() && backup->step()) {
  }
  const std::lock_guard lock(state->mutex);
  --state->running;
  state->changed.notify_all();
}

}  // namespace pawl::store::journal
