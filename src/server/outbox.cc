#include "server/outbox.h"

#include "base/assert.h"

namespace pawl::server {

void Outbox::seal(BatchId after) {
  // Behind a reply that waits for the same batch or a later one, this one waits with it.
  if (passed_ < marks_.size() && marks_.back().after >= after) {
    marks_.back().end = bytes_.size();
  } else {
    marks_.push_back({after, bytes_.size()});
  }
}

std::string_view Outbox::ready(BatchId durable) {
  while (passed_ < marks_.size() && marks_[passed_].after <= durable) free_ = marks_[passed_++].end;
  if (passed_ == marks_.size()) {
    marks_.clear();
    passed_ = 0;
  }
  return std::string_view(bytes_).substr(sent_, free_ - sent_);
}

void Outbox::sent(std::size_t count) {
  PAWL_ASSERT(count <= free_ - sent_);
  sent_ += count;
  if (sent_ == bytes_.size()) {
    bytes_.clear();
    if (bytes_.capacity() > kKeep) bytes_.shrink_to_fit();
    marks_.clear();
    passed_ = free_ = sent_ = 0;
  } else if (sent_ > kKeep && sent_ > bytes_.size() / 2) {
    bytes_.erase(0, sent_);
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(passed_));
    for (Mark& mark : marks_) mark.end -= sent_;
    free_ -= sent_;
    passed_ = sent_ = 0;
  }
}

}  // namespace pawl::server
