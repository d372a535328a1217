#include "guard/dynamodb/writer.h"

#include <utility>

namespace pawl::guard {
namespace {

// Of attempts that were throttled, or that transactions of others got in the way of; a lease may
// end it sooner.
constexpr std::chrono::seconds kGiveUp{30};

}  // namespace

Error to_error(const DynamoVerdict& refusal) {
  return {refusal.end == DynamoVerdict::End::kStale ? Code::kStaleToken : Code::kInvalid,
          refusal.text};
}

Decision to_decision(const DynamoVerdict& answer, std::uint64_t token) {
  return {.verdict = verdict_of(answer.end),
          .token = token,
          .max = answer.max,
          .mode = answer.mode,
          .let_through = answer.let_through};
}

DynamoWriter::DynamoWriter(DynamoCalls& calls, HeldToken held, DynamoOrder order)
    : RetryAndSettle(std::move(held), {.until = std::chrono::steady_clock::now() + kGiveUp}),
      calls_(calls),
      order_(std::move(order)),
      give_up_(std::chrono::steady_clock::now() + kGiveUp) {
  order_.token = std::to_string(token());
  order_.nonce = calls_.new_nonce();
}

RetryAndSettle::Attempt DynamoWriter::attempt() {
  const auto answer = calls_.write(order_);
  if (!answer) {
    if (answer.error().code == Code::kUnknown) return Unknown{answer.error()};
    if (answer.error().code == Code::kUnavailable) return Again{answer.error()};
    return unless_unsettled(answer.error());
  }
  if (answer->text.empty()) {
    met_ = answer->end != DynamoVerdict::End::kUnmet;
    if (met_) return to_decision(*answer, token());
    if (order_.unsettled)
      return Error{Code::kUnknown,
                   "an earlier attempt was not answered, and may still arrive; now your own "
                   "condition is not met"};
    return Decision{.verdict = Verdict::kAdmitted, .token = token(), .max = answer->max};
  }
  const Error error = to_error(*answer);
  if (error.code == Code::kStaleToken) return explain_stale(error, answer->max);
  return unless_unsettled(error);
}

// Read back, never sent again blindly. A copy that is still on its way cannot take effect beside
// the repetition: with a number it is replayed, and without one the condition lets one of them land.
RetryAndSettle::Settled DynamoWriter::settle() {
  const auto landing = calls_.find_landing(order_);
  if (!landing) return Settled::kNotYet;
  order_.unsettled = true;
  if (*landing == DynamoCalls::Landing::kApplied) return Settled::kApplied;
  const bool repeats = *landing == DynamoCalls::Landing::kMayRepeat || order_.operation != 0;
  if (!repeats || std::chrono::steady_clock::now() >= give_up_) return Settled::kCannotTell;
  // At once only the first time.
  paused_ = !paused_;
  return paused_ ? Settled::kNotYet : Settled::kRepeat;
}

std::string_view DynamoWriter::cannot_tell() const {
  return "whether the write is in effect is unknown: another came after it, or DynamoDB keeps "
         "failing; with an operation number it can be found out later";
}

}  // namespace pawl::guard
