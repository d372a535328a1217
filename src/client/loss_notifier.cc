#include "client/loss_notifier.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "client/detached_thread.h"

namespace pawl::client {
namespace {

// The queue whose notification runs on this thread.
thread_local const void* notifying = nullptr;

}  // namespace

struct LossNotifier::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::stop_source> lost;
  int threads = 1;
  int waiting = 0;  // threads without work, or about to look for it
  int running = 0;  // notifications
  bool ending = false;
};

LossNotifier::LossNotifier() : queue_(std::make_shared<Queue>()) {}

Result<void> LossNotifier::start() {
  return start_detached([queue = queue_] { run(queue, true); });
}

void LossNotifier::run(const std::shared_ptr<Queue>& queue, bool is_first) {
  std::unique_lock lock(queue->mutex);
  if (is_first) ++queue->waiting;
  for (;;) {
    if (is_first) queue->changed.wait(lock, [&] { return queue->ending || !queue->lost.empty(); });
    --queue->waiting;
    if (queue->lost.empty()) break;
    std::stop_source lost = std::move(queue->lost.front());
    queue->lost.pop_front();
    ++queue->running;
    const bool others_wait = !queue->lost.empty();
    lock.unlock();
    if (others_wait) start_helper(queue);
    notifying = queue.get();
    lost.request_stop();
    notifying = nullptr;
    lock.lock();
    --queue->running;
    ++queue->waiting;
    queue->changed.notify_all();
  }
  --queue->threads;
}

// Unless a thread is about to look at the queue anyway.
void LossNotifier::start_helper(const std::shared_ptr<Queue>& queue) {
  {
    const std::lock_guard lock(queue->mutex);
    if (queue->waiting > 0 || queue->threads >= kThreadsMax) return;
    ++queue->threads;
    ++queue->waiting;
  }
  if (start_detached([queue] { run(queue, false); })) return;
  const std::lock_guard lock(queue->mutex);
  --queue->threads;
  --queue->waiting;
}

void LossNotifier::notify(std::stop_source lost) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->lost.push_back(std::move(lost));
  }
  queue_->changed.notify_all();
  start_helper(queue_);
}

void LossNotifier::drain(std::chrono::milliseconds wait_at_most) {
  if (notifying == queue_.get()) return;
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait_for(lock, wait_at_most,
                           [&] { return queue_->running == 0 && queue_->lost.empty(); });
}

void LossNotifier::end() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
  }
  queue_->changed.notify_all();
}

}  // namespace pawl::client
