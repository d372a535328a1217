// Reads the entries of the log in order, and checks that nothing is missing or changed: when the
// log is loaded, and when entries arrive by a watch. etcd has lost events of watches, so the chain
// of checksums is what shows that a copy is complete.
//
//   LogReader reader(head);                    // begins before the entry head.first
//   for (…) {
//     const auto taken = reader.take(number, value, [&](std::string_view operations) { … });
//     if (!taken) …begin again: taken.error() says what is wrong…
//   }
//   if (const auto complete = reader.check(head); !complete) …
//
// The operations of a batch are passed when its group is complete, carried records at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "etcd/log_format.h"
#include "pawl/result.h"

namespace pawl::etcd {

class LogReader {
 public:
  // Gets operations (base/batch.h) in the order in which they take effect, with the number of the
  // entry that they are in.
  using Apply = std::function<void(std::uint64_t number, std::string_view operations)>;

  explicit LogReader(const Head& head)
      : incarnation_(head.incarnation), first_(head.first), next_(head.first) {}

  // The number of the next entry.
  [[nodiscard]] std::uint64_t next() const { return next_; }
  // The crc of the last entry.
  [[nodiscard]] std::uint32_t crc() const { return crc_; }
  // The entry `number`. An error names the entry and what is wrong; nothing more may be read then.
  [[nodiscard]] Result<void> take(std::uint64_t number, std::string_view value, const Apply& apply);
  // Whether exactly what `head` says was read: `last` and its crc. A group that has not ended
  // does not count, and is no error.
  [[nodiscard]] Result<void> check(const Head& head) const;

 private:
  struct Pending {
    std::uint64_t number;
    std::string operations;
  };
  [[nodiscard]] Result<void> check_entry(std::uint64_t number, const Entry& entry) const;

  const Incarnation incarnation_;
  const std::uint64_t first_;
  std::uint64_t next_;
  std::uint32_t crc_ = 0;
  std::uint64_t epoch_ = 0;
  std::vector<Pending> group_;  // Of a batch that has not ended.
  std::uint64_t group_sequence_ = 0;
};

}  // namespace pawl::etcd
