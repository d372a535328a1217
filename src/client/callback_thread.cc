#include "client/callback_thread.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

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
    queue.running = true;
    lock.unlock();
    callback();
    callback = nullptr;  // Its captures are destroyed here, not under the lock.
    lock.lock();
    queue.running = false;
    ++queue.ran;
    if (queue.drains > 0) queue.changed.notify_all();
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

void CallbackThread::post_if_room(std::function<void()> callback) {
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->finish || queue_->callbacks.size() >= kQueuedMax) return;
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
                           [&] { return queue_->ran >= last || queue_->finished; });
  --queue_->drains;
}

void CallbackThread::finish(std::chrono::milliseconds wait_at_most) {
  std::unique_lock lock(queue_->mutex);
  queue_->finish = true;
  queue_->changed.notify_all();
  if (queue_->thread == std::this_thread::get_id()) return;
  queue_->changed.wait_for(lock, wait_at_most, [&] { return queue_->finished; });
}

}  // namespace pawl::client
