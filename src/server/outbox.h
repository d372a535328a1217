// What a connection is to be sent, in order, each reply held back until what it speaks of is
// durable.
//
//   wire::ReplyWriter(outbox.open(), protocol).ok();
//   outbox.seal(after);                                  // after: the batch this reply rests on
//   …  const auto bytes = outbox.ready(durable);  outbox.sent(network.send(bytes));
//
// Replies never overtake one another: one that waits holds back all behind it. Buffers keep their
// memory between turns up to kKeep, so that a steady state allocates nothing and ten thousand idle
// connections hold little.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace pawl::server {

class Outbox {
 public:
  static constexpr std::size_t kKeep = 16 * 1024;

  // Append one reply (or push) to this, then seal it.
  std::string& open() { return bytes_; }
  // What was appended since the last seal may leave once `after` is durable; 0 = at once.
  void seal(BatchId after);

  // The bytes that may leave now, given that everything up to `durable` is.
  [[nodiscard]] std::string_view ready(BatchId durable);
  // `count` bytes from the front of ready() have left.
  void sent(std::size_t count);

  // Unsent bytes, held ones included.
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

 private:
  struct Mark {
    BatchId after;
    std::size_t end;  // offset in bytes_
  };

  std::string bytes_;
  std::vector<Mark> marks_;  // ascending ends
  std::size_t passed_ = 0;   // marks_ before this one are durable
  std::size_t free_ = 0;     // bytes_ before this offset may leave
  std::size_t sent_ = 0;     // bytes_ before this offset have left
};

}  // namespace pawl::server
