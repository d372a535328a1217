// The thread that runs users' callbacks, one after the other. A callback that never returns blocks
// other callbacks and nothing else; the loss of a lease is reported by loss_notifier.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "pawl/result.h"

namespace pawl::client {

class CallbackThread {
 public:
  CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Once, before anything else. An error: there is no thread to be had.
  [[nodiscard]] Result<void> start();
  // Runs callbacks in order, each exactly once: after the thread has ended, on the caller's thread.
  // An exception ends the process, as on any thread.
  void post(std::function<void()> callback);
  // The same for log lines and metrics: dropped while too much is queued, such as behind a callback
  // that is stuck, and after end().
  void post_if_room(std::function<void()> callback);
  // Waits until all callbacks queued now have run, `wait_at_most`. Does not wait when called from a
  // callback.
  void drain(std::chrono::milliseconds wait_at_most);
  // The thread ends when nothing is queued any more.
  void end();
  // Waits for that, `wait_at_most`. Does not wait when called from a callback.
  void wait_until_ended(std::chrono::milliseconds wait_at_most);

 private:
  struct Queue;
  static void run(Queue& queue);
  std::shared_ptr<Queue> queue_;  // Shared with the thread, which may outlive us.
};

}  // namespace pawl::client
