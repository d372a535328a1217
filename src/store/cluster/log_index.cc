#include "store/cluster/log_index.h"

#include "base/assert.h"
#include "base/batch.h"

namespace pawl::store::cluster {
namespace {

constexpr std::uint64_t kLiveBytesPerEntry = 16 * 1024;

}  // namespace

void LogIndex::forget(const Place& place) {
  use_of(place.number).live -= place.bytes;
  live_ -= place.bytes;
}

void LogIndex::add(std::uint64_t number, std::uint64_t bytes, std::string_view operations) {
  PAWL_ASSERT(number == first_ + uses_.size());
  uses_.push_back({.bytes = bytes});
  bytes_ += bytes;
  while (!operations.empty()) {
    const std::size_t before = operations.size();
    const auto operation = take_operation(operations);
    PAWL_ASSERT(operation.has_value());
    const auto size = static_cast<std::uint32_t>(before - operations.size());
    const auto found = places_.find(std::string(operation->key));
    if (found != places_.end()) forget(found->second);
    if (operation->put) {
      const Place place{number, size};
      if (found != places_.end()) {
        found->second = place;
      } else {
        places_.emplace(operation->key, place);
      }
      use_of(number).live += size;
      live_ += size;
    } else if (found != places_.end()) {
      places_.erase(found);
    }
  }
}

bool LogIndex::is_live(std::uint64_t number, std::string_view key) const {
  const auto found = places_.find(std::string(key));
  return found != places_.end() && found->second.number == number;
}

bool LogIndex::is_beyond(std::uint64_t times) const {
  return bytes_ > times * (2 * live_ + limits_.slack_bytes) ||
         entries() > times * (limits_.entries_free + live_ / kLiveBytesPerEntry);
}

bool LogIndex::wants_cleaning() const {
  return is_beyond(1);
}

bool LogIndex::must_be_cleaned() const {
  return is_beyond(2);
}

CleaningPlan LogIndex::plan() const {
  CleaningPlan plan{.first = first_};
  while (plan.first + 1 < first_ + uses_.size() && plan.first - first_ < limits_.entries_max) {
    const std::uint64_t live = uses_[plan.first - first_].live;
    const bool fits = plan.carried_bytes + live <= limits_.carried_max;
    if (!fits && plan.first > first_) break;
    plan.first += 1;
    plan.carried_bytes += live;
    if (!fits) break;
  }
  return plan;
}

bool LogIndex::any_live_before(std::uint64_t first) const {
  PAWL_ASSERT(first >= first_ && first <= first_ + uses_.size());
  for (std::uint64_t number = first_; number < first; ++number) {
    if (uses_[number - first_].live != 0) return true;
  }
  return false;
}

void LogIndex::drop_before(std::uint64_t first) {
  PAWL_ASSERT(first >= first_ && first <= first_ + uses_.size());
  while (first_ < first) {
    PAWL_ASSERT(uses_.front().live == 0);
    bytes_ -= uses_.front().bytes;
    uses_.pop_front();
    first_ += 1;
  }
}

}  // namespace pawl::store::cluster
