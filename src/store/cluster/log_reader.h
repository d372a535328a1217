// Reads the entries of the shared log in order, and checks that nothing is missing or changed: the
// chain of checksums is what shows that a copy is complete.
//
//   LogReader reader(head);                    // begins before the entry head.first
//   for (…) {
//     const auto taken = reader.take(number, value, [&](std::string_view operations) { … });
//     if (!taken) …begin again: taken.error() says what is wrong…
//   }
//   if (const auto complete = reader.check(head); !complete) …
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "store/cluster/log_format.h"

namespace pawl::store::cluster {

class LogReader {
 public:
  // Gets the operations (base/batch.h) of an entry in the order in which they take effect, carried
  // records first.
  using Apply = std::function<void(std::string_view operations)>;

  explicit LogReader(const Head& head)
      : incarnation_(head.incarnation), first_(head.first), next_(head.first) {}

  // The number of the next entry.
  [[nodiscard]] std::uint64_t next() const { return next_; }
  // The crc of the last entry.
  [[nodiscard]] std::uint32_t crc() const { return crc_; }
  // The entry `number`. An error names the entry and what is wrong; nothing more may be read then.
  [[nodiscard]] Result<void> take(std::uint64_t number, std::string_view value, const Apply& apply);
  // Whether exactly what `head` says was read: `last` and its crc.
  [[nodiscard]] Result<void> check(const Head& head) const;

 private:
  [[nodiscard]] Result<void> check_entry(std::uint64_t number, const Entry& entry) const;

  const Incarnation incarnation_;
  const std::uint64_t first_;
  std::uint64_t next_;
  std::uint32_t crc_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace pawl::store::cluster
