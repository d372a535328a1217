#include "client/callback_thread.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "client/detached_thread.h"

namespace pawl::client {
namespace {

constexpr std::size_t kQueuedMax = 10'000;

}  // namespace

struct CallbackThread::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> callbacks;
  std::uint64_t ran = 0;
  bool running = false;  // a callback, which is not in `callbacks` any more
  int drains = 0;        // in progress
  std::thread::id thread;
  bool ending = false;
  bool ended = false;
};

CallbackThread::CallbackThread() : queue_(std::make_shared<Queue>()) {}

Result<void> CallbackThread::start() {
  return start_detached([queue = queue_] { run(*queue); });
}

void CallbackThread::run(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  queue.thread = std::this_thread::get_id();
  for (;;) {
    queue.changed.wait(lock, [&] { return queue.ending || !queue.callbacks.empty(); });
    if (queue.callbacks.empty()) break;
    std::function<void()> callback = std::move(queue.callbacks.front());
    queue.callbacks.pop_front();
    queue.running = true;
    lock.unlock();
    callback();
    callback = nullptr;  // Its captures are destroyed here, not under the lock.
    lock.lock();
    queue.running = false;
    ++queue.ran;
    if (queue.drains > 0) queue.changed.notify_all();
  }
  queue.ended = true;
  queue.changed.notify_all();
}

void CallbackThread::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(queue_->mutex);
    if (!queue_->ended) queue_->callbacks.push_back(std::exchange(callback, nullptr));
  }
  if (callback) return callback();
  queue_->changed.notify_all();
}

void CallbackThread::post_if_room(std::function<void()> callback) {
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->ending || queue_->callbacks.size() >= kQueuedMax) return;
    queue_->callbacks.push_back(std::move(callback));
  }
  queue_->changed.notify_all();
}

void CallbackThread::drain(std::chrono::milliseconds wait_at_most) {
  std::unique_lock lock(queue_->mutex);
  if (queue_->thread == std::this_thread::get_id()) return;
  const std::uint64_t last = queue_->ran + queue_->callbacks.size() + (queue_->running ? 1 : 0);
  ++queue_->drains;
  queue_->changed.wait_for(lock, wait_at_most,
                           [&] { return queue_->ran >= last || queue_->ended; });
  --queue_->drains;
}

void CallbackThread::end() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
  }
  queue_->changed.notify_all();
}

void CallbackThread::wait_until_ended(std::chrono::milliseconds wait_at_most) {
  std::unique_lock lock(queue_->mutex);
  if (queue_->thread == std::this_thread::get_id()) return;
  queue_->changed.wait_for(lock, wait_at_most, [&] { return queue_->ended; });
}

}  // namespace pawl::client
