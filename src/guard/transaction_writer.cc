#include "guard/transaction_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pawl::guard {
namespace {

// In a fixed order two writers that name the same resources cannot deadlock.
std::vector<std::string> in_order(std::vector<std::string> resources) {
  PAWL_ASSERT(!resources.empty());
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  return resources;
}

}  // namespace

TransactionWriter::TransactionWriter(WriteOrder order)
    : RetryAndSettle(std::move(order.held), order.limits),
      resources_(in_order(std::move(order.resources))),
      operation_(order.operation) {}

RetryAndSettle::Attempt TransactionWriter::attempt() {
  auto begun = begin();
  if (auto* failure = std::get_if<Failure>(&begun)) return failed(*failure);
  if (auto* error = std::get_if<Error>(&begun)) {
    roll_back();
    return std::move(*error);
  }
  const Decision decision = std::get<Decision>(begun);
  if (decision.verdict == Verdict::kReplayed) {
    roll_back();
    return decision;
  }
  auto worked = work_or_roll_back();
  if (auto* failure = std::get_if<Failure>(&worked)) return failed(*failure);
  if (auto* error = std::get_if<Error>(&worked)) {
    roll_back();
    return std::move(*error);
  }
  return commit_decision(decision);
}

TransactionWriter::Step TransactionWriter::work_or_roll_back() {
  try {
    Step worked = work();
    if (!std::holds_alternative<std::monostate>(worked)) return worked;
  } catch (...) {
    roll_back();
    throw;
  }
  // The guard would refuse a late write; this spares other writers the wait for it.
  if (auto held = check_held(); !held) return held.error();
  return {};
}

RetryAndSettle::Attempt TransactionWriter::commit_decision(const Decision& decision) {
  PAWL_ASSERT(decision.verdict != Verdict::kReplayed);  // Its work must not run again.
  auto done = commit();
  if (auto* error = std::get_if<Error>(&done)) return std::move(*error);
  if (auto* failure = std::get_if<Failure>(&done)) {
    if (!failure->disconnected) return failed(*failure);
    return Unknown{
        {Code::kUnknown, "the connection broke at the commit: " + failure->error.detail}};
  }
  return decision;
}

RetryAndSettle::Attempt TransactionWriter::failed(const Failure& failure) {
  roll_back();
  if (failure.may_pass_again) return Again{failure.error};
  // Before a commit nothing has happened; an earlier one that is unsettled still is.
  if (failure.disconnected && unsettled()) return Unknown{{Code::kUnknown, failure.error.detail}};
  if (failure.error.code != Code::kStaleToken) return unless_unsettled(failure.error);
  return explain_stale(failure.error, failure.max);
}

RetryAndSettle::Settled TransactionWriter::settle() {
  if (operation_ == 0) return Settled::kCannotTell;
  return connect_again() ? Settled::kRepeat : Settled::kNotYet;
}

std::string_view TransactionWriter::cannot_tell() const {
  return "whether the write is in effect is unknown; with an operation number it could be found "
         "out";
}

}  // namespace pawl::guard
