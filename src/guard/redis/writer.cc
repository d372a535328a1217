#include "guard/redis/writer.h"

#include <utility>

#include "guard_contract/parse.h"

namespace pawl::guard {

Result<Decision> to_decision(const RedisAnswer& answer, std::uint64_t token) {
  const auto verdict = parse_verdict(answer.at(0).value_or(""));
  if (!verdict)
    return Error{Code::kInvalid, "the installed guard answered what this libpawl does not know"};
  return Decision{.verdict = *verdict,
                  .token = token,
                  .max = parse_token(answer.at(1).value_or("")).value_or(0),
                  .let_through = *verdict > Verdict::kReplayed};
}

RedisWriter::RedisWriter(RedisCalls& calls, RedisOrder order, std::function<bool()> connect_again)
    : RetryAndSettle(std::move(order.held), {}),
      calls_(calls),
      resource_(std::move(order.resource)),
      operation_(order.operation),
      command_(std::move(order.command)),
      connect_again_(std::move(connect_again)) {}

RetryAndSettle::Attempt RedisWriter::attempt() {
  RedisWords arguments{resource_, std::to_string(token()),
                       operation_ == 0 ? "" : std::to_string(operation_)};
  arguments.insert(arguments.end(), command_.begin(), command_.end());
  const RedisAnswer answer = calls_.call("pawl_write", resource_, std::move(arguments));
  if (answer.failure) {
    Error error = to_error(*answer.failure);
    if (answer.failure->disconnected) return Unknown{std::move(error)};
    if (error.code == Code::kStaleToken)
      return explain_stale(error, parse_field(answer.failure->text, "max"));
    return unless_unsettled(std::move(error));
  }
  auto decision = to_decision(answer, token());
  if (!decision) return decision.error();
  reply_ = answer.reply.items.size() > 2 ? answer.reply.items[2] : RedisReply{};
  return *decision;
}

// The lost call may still be on its way, but not take effect twice: its number is then replayed, or
// smaller than the last.
RetryAndSettle::Settled RedisWriter::settle() {
  if (operation_ == 0) return Settled::kCannotTell;
  return connect_again_() ? Settled::kRepeat : Settled::kNotYet;
}

std::string_view RedisWriter::cannot_tell() const {
  return "whether the write is in effect is unknown; with an operation number it could be found "
         "out";
}

}  // namespace pawl::guard
