// Changes: what inputs cause, until the caller takes it. Replies, events and the batch of records
// that are to become durable together; and the counter of tokens, which is part of every batch that
// moves it.
//
// A batch is open while it is filled, then taken, then durable. Batches become durable in the order
// in which they were taken.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/batch.h"
#include "base/limits.h"
#include "base/types.h"
#include "core/outputs.h"
#include "core/records.h"

namespace pawl::core {

class Changes {
 public:
  // --- Replies and events ------------------------------------------------------------------------
  // Answers once everything that was changed so far is durable, because the answer may rest on it.
  void reply(WaiterId waiter, Outcome outcome) {
    output_.replies.push_back({waiter, outcome, last_batch()});
  }
  // Answers at once: the answer rests on nothing that is stored.
  void reply_at_once(WaiterId waiter, Outcome outcome) {
    output_.replies.push_back({waiter, outcome, BatchId{}});
  }
  // Adds the event with these texts. It belongs to the open batch, which must not stay empty.
  void add_event(Event event, std::string_view lock, std::string_view owner,
                 std::string_view reason);
  [[nodiscard]] Output& output() { return output_; }

  // --- Tokens (G1) -------------------------------------------------------------------------------
  [[nodiscard]] Token last_token() const { return last_token_; }
  [[nodiscard]] bool tokens_left() const { return last_token_.value < limits::kTokenMax; }
  // The token of the next grant; there must be one left. The open batch covers it.
  Token next_token();
  // Moves the counter forward, and records that in the open batch. `token` is greater than the
  // last, and at most limits::kTokenMax.
  void raise_token(Token token);
  // The counter, as the store keeps it.
  void write_last_token(Batch& out) const;
  // While loading: the counter is at least at `token`.
  void load_token(Token token);

  // --- Records -----------------------------------------------------------------------------------
  void put_lease(const LeaseRecord& record);
  void erase_lease(Token token) { batch_.erase(lease_key(token)); }
  // The wait after a restore is over; in the same batch as the first grants, or an earlier one.
  void erase_restored() { batch_.erase(kRestoredKey); }

  // --- Batches -----------------------------------------------------------------------------------
  // No batch may hold more than this. Before anything is changed.
  void limit_batches(const BatchLimits& limits);
  // The open batch has no room for another step: whoever can wait makes no change.
  [[nodiscard]] bool full() const {
    return batch_.bytes().size() > full_at_.bytes || batch_.operations() > full_at_.operations;
  }
  // Whether the open batch has nothing.
  [[nodiscard]] bool empty() const { return batch_.empty(); }
  // The batch that is being filled.
  [[nodiscard]] BatchId open_batch() const { return BatchId{taken_.value + 1}; }
  // The newest batch that holds any change, taken or not; 0 when all is durable.
  [[nodiscard]] BatchId last_batch() const {
    if (!batch_.empty()) return open_batch();
    return taken_ > durable_ ? taken_ : BatchId{};
  }
  // Moves the open batch into `out`, replacing what that held; 0 when there is nothing to take.
  BatchId take_batch(Batch& out);
  // `batch` has been taken, and is newer than any that was durable before.
  void mark_durable(BatchId batch);

 private:
  // Once per batch: only the last token counts.
  void put_last_token();

  Output output_;
  Batch batch_;  // The open one.
  BatchLimits full_at_;
  BatchId taken_;    // The newest batch taken.
  BatchId durable_;  // The newest batch known to be durable.
  Token last_token_;
  Token recorded_token_;  // The last one put into a batch.
  std::string scratch_;   // For encoding records.
};

}  // namespace pawl::core
