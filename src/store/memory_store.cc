#include "store/memory_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pawl::store {

Result<Loaded> MemoryStore::load(Visitor& visitor) {
  PAWL_ASSERT(held_.empty() && is_active());
  visitor.expect(records_.size());
  for (const auto& [key, value] : records_) {
    if (auto seen = visitor.record(key, value); !seen) return seen.error();
  }
  const Loaded loaded{
      incarnation_, high_water_, sequence_, !loaded_before_, clean_ && loaded_before_, epoch_};
  loaded_before_ = true;
  clean_ = false;
  return loaded;
}

void MemoryStore::submit(const Batch& batch, BatchId id, Sink& sink) {
  PAWL_ASSERT(ready() && is_active());
  PAWL_ASSERT(batch.bytes().size() <= limits_.bytes && batch.operations() <= limits_.operations);
  largest_batch_ = std::max(largest_batch_, batch.bytes().size());
  high_water_ = std::max(high_water_, batch.covered());
  if (holding_) {
    held_.push_back(Held{batch, id});
    return;
  }
  pump(sink);  // In order of submission.
  PAWL_ASSERT(held_.empty());
  commit(batch, id, sink);
}

void MemoryStore::pump(Sink& sink) {
  if (deposed_by_ && !std::exchange(deposed_reported_, true)) sink.deposed(*deposed_by_);
  for (; released_ > 0; --released_) {
    const Held next = std::move(held_.front());
    held_.pop_front();
    commit(next.batch, next.id, sink);
  }
}

bool MemoryStore::release_next() {
  if (held() == 0) return false;
  ++released_;
  if (waker_ != nullptr) waker_->wake();
  return true;
}

void MemoryStore::release() {
  while (release_next()) {
  }
  holding_ = false;
}

void MemoryStore::depose(Active by) {
  held_.clear();
  released_ = 0;
  epoch_ = by.epoch;
  deposed_by_ = std::move(by);
  deposed_reported_ = false;
  if (waker_ != nullptr) waker_->wake();
}

void MemoryStore::elect() {
  deposed_by_.reset();
  ++epoch_;
  if (waker_ != nullptr) waker_->wake();
}

void MemoryStore::crash() {
  held_.clear();
  released_ = 0;
  holding_ = false;
  clean_ = false;
}

Result<void> MemoryStore::close() {
  PAWL_ASSERT(held_.empty());
  clean_ = true;
  return {};
}

void MemoryStore::commit(const Batch& batch, BatchId id, Sink& sink) {
  if (failure_) return sink.failed(id, *failure_);
  for (std::string_view rest = batch.bytes(); !rest.empty();) {
    const auto operation = take_operation(rest);
    PAWL_ASSERT(operation.has_value());
    if (operation->put) {
      records_.insert_or_assign(std::string(operation->key), std::string(operation->value));
    } else if (const auto found = records_.find(operation->key); found != records_.end()) {
      records_.erase(found);
    }
  }
  ++sequence_;
  sink.durable(id);
}

}  // namespace pawl::store
