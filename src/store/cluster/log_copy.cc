#include "store/cluster/log_copy.h"

#include <set>

#include "base/assert.h"
#include "base/batch.h"

namespace pawl::store::cluster {

LogCopy::LogCopy(const Head& head, const CleaningLimits& limits)
    : reader_(head), index_(head.first, limits) {}

Result<void> LogCopy::take(std::uint64_t number, std::string_view bytes) {
  auto taken = reader_.take(number, bytes, [&](std::string_view operations) {
    index_.add(number, bytes.size(), operations);
  });
  return taken;
}

void LogRecords::apply(std::string_view operations) {
  while (!operations.empty()) {
    const auto operation = take_operation(operations);
    PAWL_ASSERT(operation.has_value());  // The reader has tried.
    if (operation->put) {
      records_.insert_or_assign(std::string(operation->key), std::string(operation->value));
    } else if (const auto found = records_.find(operation->key); found != records_.end()) {
      records_.erase(found);
    }
  }
}

Result<void> LogCopy::complete(const Head& head) {
  if (auto complete = reader_.check(head); !complete) return complete;
  if (head.first < index_.first() || head.first > next())
    return Error{Code::kInvalid, "the shared log: its first entry is not one that it has"};
  if (index_.any_live_before(head.first)) {
    return Error{Code::kInvalid, "the shared log: entries before " + std::to_string(head.first) +
                                     " were deleted, and not all of their records were carried"};
  }
  index_.drop_before(head.first);
  return {};
}

void LogCopy::skip_to(std::uint64_t next) {
  index_ = LogIndex(next, index_.limits());
}

Result<std::string> carried_records(const LogIndex& index,
                                    const std::vector<SharedLog::NumberedEntry>& entries,
                                    std::string_view batch) {
  std::set<std::string_view> overridden;
  while (!batch.empty()) overridden.insert(take_operation(batch)->key);
  Batch carried;
  for (const auto& [number, bytes] : entries) {
    const auto entry = decode_entry(bytes);
    if (!entry) return entry.error();
    // The index knows the entry of a record, not its place there: the last put counts.
    std::map<std::string_view, std::string_view> last;
    for (std::string_view part : {entry->carried, entry->operations}) {
      while (!part.empty()) {
        const auto operation = take_operation(part);
        if (!operation) return operation.error();
        if (operation->put) last.insert_or_assign(operation->key, operation->value);
      }
    }
    for (const auto& [key, value] : last) {
      if (index.is_live(number, key) && !overridden.contains(key)) carried.put(key, value);
    }
  }
  return std::string(carried.bytes());
}

}  // namespace pawl::store::cluster
