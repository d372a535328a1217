#include "store/cluster/log_reader.h"

#include "base/batch.h"

namespace pawl::store::cluster {
namespace {

Error wrong(std::uint64_t number, const std::string& what) {
  return {Code::kInvalid, "entry " + std::to_string(number) + " of the shared log: " + what};
}

bool are_operations(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!take_operation(bytes)) return false;
  }
  return true;
}

}  // namespace

Result<void> LogReader::check_entry(std::uint64_t number, const Entry& entry) const {
  if (number != next_) return wrong(number, "entry " + std::to_string(next_) + " is missing");
  if (entry.header.number != number)
    return wrong(number, "it says that it is entry " + std::to_string(entry.header.number));
  if (entry.header.incarnation != incarnation_) return wrong(number, "it is of another store");
  if (number != first_ && entry.header.previous_crc != crc_)
    return wrong(number, "it does not continue the entry before");
  if (entry.header.epoch < epoch_) return wrong(number, "its epoch is lower than that before");
  if (!are_operations(entry.carried) || !are_operations(entry.operations))
    return wrong(number, "its operations cannot be read");
  return {};
}

Result<void> LogReader::take(std::uint64_t number, std::string_view value, const Apply& apply) {
  const auto entry = decode_entry(value);
  if (!entry) return wrong(number, entry.error().detail);
  if (const auto valid = check_entry(number, *entry); !valid) return valid.error();
  epoch_ = entry->header.epoch;
  crc_ = entry->crc;
  next_ += 1;
  apply(operations_of(value));
  return {};
}

Result<void> LogReader::check(const Head& head) const {
  if (next_ != head.last + 1)
    return wrong(next_,
                 "it is missing; the head says that the last is " + std::to_string(head.last));
  const bool is_empty = head.last + 1 == head.first;
  if (!is_empty && crc_ != head.last_crc)
    return wrong(head.last, "its checksum is not the one in the head");
  return {};
}

}  // namespace pawl::store::cluster
