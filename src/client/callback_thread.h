// The thread that runs what users gave us to run. A callback that never returns holds up other
// callbacks and nothing else.
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

  // Runs it after those before it. What it throws ends the process, as on any thread.
  void post(std::function<void()> callback);
  // The same for what is only nice to know: dropped while too much is queued, as behind a callback
  // that is stuck.
  void offer(std::function<void()> callback);
  // Waits until what is queued now has run, as long as told. Does not wait when called from a
  // callback.
  void drain(std::chrono::milliseconds wait_at_most);
  // Runs what is queued, then ends. Waits for that as long as told; a stuck callback is left
  // behind. Does not wait when called from a callback.
  void finish(std::chrono::milliseconds wait_at_most);

 private:
  struct Queue;
  static void run(Queue& queue);
  std::shared_ptr<Queue> queue_;  // The thread's too: it may outlive us.
};

}  // namespace pawl::client
