#include "guard/etcd/writer.h"

#include <utility>

namespace pawl::guard {

Error to_error(const EtcdAnswer& refusal) {
  return {refusal.end == EtcdAnswer::End::kStale ? Code::kStaleToken : Code::kInvalid,
          refusal.text};
}

Decision to_decision(const EtcdAnswer& answer, std::uint64_t token) {
  return {.verdict = verdict_of(answer.end),
          .token = token,
          .max = answer.max,
          .mode = answer.mode,
          .let_through = answer.let_through};
}

EtcdWriter::EtcdWriter(EtcdCalls& calls, HeldToken held, EtcdOrder order,
                       std::chrono::milliseconds time_limit)
    : RetryAndSettle(std::move(held),
                     {.settle_until = std::chrono::steady_clock::now() + time_limit}),
      calls_(calls),
      order_(std::move(order)) {
  order_.token = std::to_string(token());
}

RetryAndSettle::Attempt EtcdWriter::attempt() {
  const auto answer = calls_.write(order_);
  if (!answer) {
    if (answer.error().code == Code::kUnknown) return Unknown{answer.error()};
    return unless_unsettled(answer.error());
  }
  if (answer->text.empty()) {
    met_ = answer->end != EtcdAnswer::End::kUnmet;
    if (met_) return to_decision(*answer, token());
    return Decision{.verdict = Verdict::kAdmitted, .token = token(), .max = answer->max};
  }
  const Error error = to_error(*answer);
  if (error.code == Code::kStaleToken) return explain_stale(error, answer->max);
  return unless_unsettled(error);
}

// The transaction that was lost may still be on its way, but not take effect twice: its number is
// then replayed, or smaller than the last.
RetryAndSettle::Settled EtcdWriter::settle() {
  if (order_.operation == 0) return Settled::kCannotTell;
  return calls_.check(order_.resources.front(), token()) ? Settled::kRepeat : Settled::kNotYet;
}

std::string_view EtcdWriter::cannot_tell() const {
  return "whether the write is in effect is unknown; with an operation number it could be found "
         "out";
}

}  // namespace pawl::guard
