#include "client/lease_flows.h"

#include <string_view>
#include <vector>

#include "wire/command_writer.h"

namespace pawl::client {
namespace {

constexpr int kLateMax = 3;

}  // namespace

void RenewFlow::append(std::string& out, Instant now) {
  sent_ = now;
  if (call_.asks) return wire::append_renew_asks(out, call_.lease);
  wire::append_renew(out, call_.lease);
}

Result<wire::RenewalReply> RenewFlow::read(const wire::Value& value) const {
  if (call_.asks) return wire::read_renewal(value);
  const auto answered = wire::read_integer(value);
  if (!answered) return answered.error();
  return wire::RenewalReply{Millis(*answered)};
}

void RenewFlow::on_reply(const wire::Value& value, Instant now) {
  auto answered = read(value);
  if (!answered) return finish_with(failure(answered.error()));
  const Millis expires_in = answered->expires_in;
  const Instant until =
      deadline(RenewTiming{sent_, expires_in, call_.ttl > Millis(0) ? call_.ttl : expires_in});
  if (now < until) {
    return finish_with(
        Result<RenewResult>(RenewResult{expires_in, until, std::move(answered->release_wanted)}));
  }
  if (++late_ < kLateMax) return ready();
  finish_with(failure({Code::kUnknown, "answers take longer than the TTL"}));
}

void RenewManyFlow::append(std::string& out, Instant now) {
  sent_ = now;
  wire::append_mrenew(out, call_.leases);
}

void RenewManyFlow::on_reply(const wire::Value& value, Instant) {
  if (value.is_error()) return finish_with(failure(wire::error_from_line(value.text)));
  if (value.kind != wire::Value::Kind::kArray || value.items.size() != call_.leases.size()) {
    return finish_with(
        failure({Code::kUnknown, "protocol error: MRENEW did not answer one number per lease"}));
  }
  RenewManyResult renewals{sent_};
  for (const wire::Value& item : value.items) {
    const auto renewed = wire::read_renewed_item(item);
    if (!renewed)
      return finish_with(
          failure({Code::kUnknown, "protocol error: MRENEW did not answer a number"}));
    renewals.answered.push_back(*renewed);
  }
  finish_with(Result<RenewManyResult>(std::move(renewals)));
}

void ReleaseFlow::append(std::string& out, Instant) {
  wire::append_release(out, call_.lease);
}

void ReleaseFlow::on_reply(const wire::Value& value, Instant) {
  const auto released = wire::read_integer(value);
  if (!released) return finish_with(failure(released.error()));
  finish_with(Result<ReleaseResult>(ReleaseResult{*released == 1}));
}

void ReleaseFlow::abandon(Instant now, std::string_view connection_error) {
  if (now >= over_) return Flow::abandon(now, connection_error);
  const std::string why = failure_reason(connection_error);
  complete(failure({may_have_happened() ? Code::kUnknown : Code::kUnavailable,
                    why + "; not confirmed, the lease ends by itself after its TTL"}));
  linger(over_);
}

void CommandFlow::append(std::string& out, Instant) {
  const std::vector<std::string_view> words(call_.words.begin(), call_.words.end());
  wire::append_command(out, words);
}

void CommandFlow::on_reply(const wire::Value& value, Instant) {
  if (value.is_error()) return finish_with(failure(wire::error_from_line(value.text)));
  finish_with(Result<wire::Value>(value));
}

void CommandFlow::resume_after_disconnect(Instant) {
  if (repeatable()) return ready();
  finish_with(failure(
      {Code::kUnknown,
       "the connection was lost before the reply arrived; the command may have taken effect"}));
}

}  // namespace pawl::client
