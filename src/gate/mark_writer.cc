#include "gate/mark_writer.h"

#include <sys/eventfd.h>

#include <utility>

#include "base/assert.h"

namespace pawl::gate {

MarkWriter::MarkWriter(MarkFile& file)
    : file_(file), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), thread_([this] { run(); }) {
  PAWL_ASSERT(event_);
}

MarkWriter::~MarkWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MarkWriter::submit(std::string name, Mark mark) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    submitted_.emplace_back(std::move(name), mark);
  }
  wake_.notify_one();
}

Result<std::vector<std::string>> MarkWriter::take() {
  eventfd_t count = 0;
  ::eventfd_read(event_.get(), &count);
  const std::lock_guard lock(mutex_);
  if (!state_) return state_.error();
  pending_ -= written_.size();
  return std::exchange(written_, {});
}

void MarkWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !submitted_.empty(); });
    if (submitted_.empty()) return;
    const auto batch = std::exchange(submitted_, {});
    lock.unlock();
    auto appended = file_.append(batch);
    lock.lock();
    const bool failed = !appended;
    state_ = std::move(appended);
    if (!failed) {
      for (const auto& [name, mark] : batch) written_.push_back(name);
    }
    ::eventfd_write(event_.get(), 1);
    if (failed) return;
  }
}

}  // namespace pawl::gate
