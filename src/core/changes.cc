#include "core/changes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mutants.h"

namespace pawl::core {

void Changes::add_event(Event event, std::string_view lock, std::string_view owner,
                        std::string_view reason) {
  const auto keep = [&](std::string_view text, std::uint32_t& at, std::uint32_t& size) {
    if (text.empty()) return;
    at = static_cast<std::uint32_t>(output_.text.size());
    size = static_cast<std::uint32_t>(text.size());
    output_.text.append(text);
  };
  keep(lock, event.lock_at, event.lock_size);
  keep(owner, event.owner_at, event.owner_size);
  keep(reason, event.reason_at, event.reason_size);
  event.after = open_batch();
  output_.events.push_back(event);
}

Token Changes::next_token() {
  PAWL_ASSERT(tokens_left());
  last_token_.value += 1;
  batch_.cover(last_token_.value);
  return last_token_;
}

void Changes::raise_token(Token token) {
  PAWL_ASSERT(token > last_token_ && token.value <= limits::kTokenMax);
  last_token_ = token;
  if (PAWL_MUTANT(raise_not_persisted)) return;
  put_last_token();
  batch_.cover(last_token_.value);
}

void Changes::load_token(Token token) {
  PAWL_ASSERT(batch_.empty() && taken_.value == 0);
  last_token_ = std::max(last_token_, token);
}

void Changes::put_lease(const LeaseRecord& record) {
  PAWL_ASSERT(record.token <= last_token_);
  encode(record, scratch_);
  batch_.put(lease_key(record.token), scratch_);
}

void Changes::write_last_token(Batch& out) const {
  std::string value;
  put_u64(value, last_token_.value);
  out.put(kLastTokenKey, value);
}

void Changes::put_last_token() {
  if (last_token_ == recorded_token_ || PAWL_MUTANT(last_token_not_recorded)) return;
  recorded_token_ = last_token_;
  scratch_.clear();
  put_u64(scratch_, last_token_.value);
  batch_.put(kLastTokenKey, scratch_);
}

// Between two looks at full() at most two leases are put or erased, and the batch ends with the
// counter.
void Changes::limit_batches(const BatchLimits& limits) {
  constexpr std::size_t kOperations = 4;
  constexpr std::size_t kBytes = 2 * kLeaseRecordMax + 256;
  PAWL_ASSERT(batch_.empty() && limits.bytes >= 2 * kBytes && limits.operations >= 2 * kOperations);
  full_at_ = {limits.bytes - kBytes, limits.operations - kOperations};
}

BatchId Changes::take_batch(Batch& out) {
  out.clear();
  if (batch_.empty()) return BatchId{};
  put_last_token();
  std::swap(out, batch_);
  taken_ = open_batch();
  return taken_;
}

void Changes::mark_durable(BatchId batch) {
  PAWL_ASSERT(batch > durable_ && batch <= taken_);
  durable_ = batch;
}

}  // namespace pawl::core
