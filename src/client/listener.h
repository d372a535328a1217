// A user's callback that can be closed: its owner may then destroy what the callback uses.
//
//   auto listener = std::make_shared<Listener<LeaseState>>(callback);
//   callbacks.post([listener] { listener->call(LeaseState::kLost); });
//   listener->close(900ms);  // No call begins after this.
//
// Any thread may call it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace pawl::client {

template <class... Args>
class Listener {
 public:
  explicit Listener(std::function<void(Args...)> callback) : callback_(std::move(callback)) {}

  void call(Args... args) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      runner_ = std::this_thread::get_id();
    }
    callback_(args...);
    {
      const std::lock_guard lock(mutex_);
      runner_ = {};
    }
    returned_.notify_all();
  }

  // No call begins after this. Waits for one that runs, unless this is called from within it.
  void close(std::chrono::milliseconds wait_at_most) {
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (runner_ == std::this_thread::get_id()) return;
    returned_.wait_for(lock, wait_at_most, [this] { return runner_ == std::thread::id(); });
  }

 private:
  const std::function<void(Args...)> callback_;
  std::mutex mutex_;  // Not held while callback_ runs.
  std::condition_variable returned_;
  std::thread::id runner_;  // One at a time: all calls come from the callback thread.
  bool closed_ = false;
};

}  // namespace pawl::client
