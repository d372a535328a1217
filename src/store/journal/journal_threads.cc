#include "store/journal/journal_thread.h"

#include <chrono>

namespace pawl::store::journal {
namespace {
constexpr std::chrono::seconds kSpaceCheckInterval{1};
}  // namespace

JournalThread::JournalThread(Journal& journal) : journal_(journal) {
  journal_.on_work([this] { wake(); });
  thread_ = std::thread([this] { run(); });
}

JournalThread::~JournalThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  journal_.on_work(nullptr);
}

void JournalThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    work_ = true;
  }
  changed_.notify_one();
}

void JournalThread::run() {
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
      more = true;  // What lacked space may go on now.
    }
    lock.lock();
    work_ = work_ || more;
  }
}

}  // namespace pawl::store::journal
