// The thread that runs users' callbacks. A callback that never returns blocks other callbacks and
// nothing else.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace pawl::client {

class CallbackThread {
 public:
  CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Runs callbacks in order. An exception ends the process, as on any thread.
  void post(std::function<void()> callback);
  // The same for log lines and metrics: dropped while too much is queued, such as behind a callback
  // that is stuck.
  void post_if_room(std::function<void()> callback);
  // Waits until all callbacks queued now have run, `wait_at_most`. Does not wait when called from a
  // callback.
  void drain(std::chrono::milliseconds wait_at_most);
  // Runs what is queued, then ends the thread. Waits `wait_at_most` for that; a stuck callback is
  // left behind. Does not wait when called from a callback.
  void finish(std::chrono::milliseconds wait_at_most);

 private:
  struct Queue;
  static void run(Queue& queue);
  std::shared_ptr<Queue> queue_;  // Shared with the thread, which may outlive us.
};

}  // namespace pawl::client
