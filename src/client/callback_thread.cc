#include "client/callback_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace pawl::client {
namespace {

constexpr std::size_t kOfferedMax = 10'000;

}  // namespace

struct CallbackThread::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> callbacks;
  std::thread::id thread;
  bool finish = false;
  bool finished = false;
};

CallbackThread::CallbackThread() : queue_(std::make_shared<Queue>()) {
  std::thread([queue = queue_] { run(*queue); }).detach();
}

void CallbackThread::run(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  queue.thread = std::this_thread::get_id();
  for (;;) {
    queue.changed.wait(lock, [&] { return queue.finish || !queue.callbacks.empty(); });
    if (queue.callbacks.empty()) break;
    std::function<void()> callback = std::move(queue.callbacks.front());
    queue.callbacks.pop_front();
    lock.unlock();
    callback();
    callback = nullptr;  // What it owns ends here too, not under the lock.
    lock.lock();
  }
  queue.finished = true;
  queue.changed.notify_all();
}

void CallbackThread::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->finish) return;
    queue_->callbacks.push_back(std::move(callback));
  }
  queue_->changed.notify_all();
}

void CallbackThread::offer(std::function<void()> callback) {
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->finish || queue_->callbacks.size() >= kOfferedMax) return;
    queue_->callbacks.push_back(std::move(callback));
  }
  queue_->changed.notify_all();
}

void CallbackThread::finish(std::chrono::milliseconds wait_at_most) {
  std::unique_lock lock(queue_->mutex);
  queue_->finish = true;
  queue_->changed.notify_all();
  if (queue_->thread == std::this_thread::get_id()) return;
  queue_->changed.wait_for(lock, wait_at_most, [&] { return queue_->finished; });
}

}  // namespace pawl::client
