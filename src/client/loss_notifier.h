// Requests stop on the std::stop_source of a lost lease, which runs the holder's stop callbacks.
//
// A holder must stop before its deadline, so no notification waits for another one's callbacks: a
// thread that takes a notification first starts another thread for those behind it, up to
// kThreadsMax. One thread always exists, so that a process that may not start another one is
// notified too, then one lease after the other.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "pawl/result.h"

namespace pawl::client {

class LossNotifier {
 public:
  static constexpr int kThreadsMax = 64;

  LossNotifier();
  LossNotifier(const LossNotifier&) = delete;
  LossNotifier& operator=(const LossNotifier&) = delete;

  // Once, before anything else. An error: there is no thread to be had.
  [[nodiscard]] Result<void> start();
  // Returns at once. Nothing is dropped.
  void notify(std::stop_source lost);
  // Waits until all callbacks have returned, `wait_at_most`. Does not wait when called from one of
  // them.
  void drain(std::chrono::milliseconds wait_at_most);
  // The threads end when everything has been notified. Nothing may be notified after this.
  void end();

 private:
  struct Queue;
  static void run(const std::shared_ptr<Queue>& queue, bool is_first);
  static void start_helper(const std::shared_ptr<Queue>& queue);
  std::shared_ptr<Queue> queue_;  // Shared with the threads, which may outlive us.
};

}  // namespace pawl::client
