// What a pawld knows of the shared log: that what it has read of it is complete and unchanged; and
// where the records are, to clean the log. The records themselves are kept by whoever reads.
//
//   LogCopy copy(head, limits);                 // begins at head.first
//   copy.take(number, bytes);                   // every entry, in order
//   records.apply(operations_of(bytes));
//   if (copy.next() > head.last) copy.complete(head);
//   …active: copy.append() each entry that it has written itself
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "store/cluster/log_format.h"
#include "store/cluster/log_index.h"
#include "store/cluster/log_reader.h"
#include "store/cluster/shared_log.h"

namespace pawl::store::cluster {

class LogCopy {
 public:
  LogCopy(const Head& head, const CleaningLimits& limits);

  // The number of the next entry.
  [[nodiscard]] std::uint64_t next() const { return reader_.next(); }
  // The entry `number`, as read. An error names it and says what is wrong.
  [[nodiscard]] Result<void> take(std::uint64_t number, std::string_view bytes);
  // After the last entry that `head` names: checks that it was that one, and forgets the entries
  // that are deleted. An error says what is wrong.
  [[nodiscard]] Result<void> complete(const Head& head);

  // An entry that was added by this process: only its places are kept.
  void append(std::uint64_t number, std::string_view bytes) {
    index_.add(number, bytes.size(), operations_of(bytes));
  }
  void drop_before(std::uint64_t first) { index_.drop_before(first); }
  // Only a planted bug leaves entries out.
  void skip_to(std::uint64_t next);
  [[nodiscard]] const LogIndex& index() const { return index_; }

 private:
  LogReader reader_;
  LogIndex index_;
};

// The records of a log that is read whole, by key.
class LogRecords {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;

  // The operations of the next entry.
  void apply(std::string_view operations);
  // All records; they are gone then.
  [[nodiscard]] Map take() { return std::exchange(records_, {}); }

 private:
  Map records_;
};

// The live records of `entries`, the oldest ones, as operations that put them again; but none that
// `batch`, the operations after them, overrides.
[[nodiscard]] Result<std::string> carried_records(
    const LogIndex& index, const std::vector<SharedLog::NumberedEntry>& entries,
    std::string_view batch);

}  // namespace pawl::store::cluster
