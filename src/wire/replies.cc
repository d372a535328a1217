#include "wire/replies.h"

#include <array>
#include <charconv>
#include <cstring>

#include "base/assert.h"
#include "base/hex.h"
#include "base/limits.h"
#include "wire/error_code.h"

namespace pawl::wire {
namespace {

constexpr std::array kWaitEvents{WaitEvent::kGranted, WaitEvent::kTimeout, WaitEvent::kCancelled,
                                 WaitEvent::kSuperseded};

// An unexpected reply says nothing about what the server did.
Error unexpected_reply(std::string_view what) {
  return {Code::kUnknown, "unexpected reply to " + std::string(what)};
}

std::optional<std::uint64_t> number_in(const Value& map, std::string_view key, std::uint64_t max) {
  const Value* found = map.find(key);
  const auto number = found != nullptr ? found->as_integer() : std::nullopt;
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) > max) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// The size of the longest grant: 96 bytes of names and marks, 32 digits, five numbers of up to 20.
class LineBuffer {
 public:
  template <std::size_t kSize>
  void text(const char (&literal)[kSize]) {
    text(std::string_view(literal, kSize - 1));
  }
  void text(std::string_view text) {
    PAWL_ASSERT(text.size() <= sizeof(bytes_) - size_);
    std::memcpy(bytes_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void number(std::uint64_t value) {
    const auto [end, problem] = std::to_chars(bytes_ + size_, bytes_ + sizeof(bytes_), value);
    PAWL_ASSERT(problem == std::errc());
    size_ = static_cast<std::size_t>(end - bytes_);
  }
  void hex(LeaseId lease) {
    PAWL_ASSERT(kLeaseDigits <= sizeof(bytes_) - size_);
    write_hex(lease, bytes_ + size_);
    size_ += kLeaseDigits;
  }
  [[nodiscard]] std::string_view view() const { return {bytes_, size_}; }

 private:
  char bytes_[256];
  std::size_t size_ = 0;
};

std::optional<LeaseId> lease_in(const Value& map) {
  const Value* found = map.find("lease");
  const auto digits = found != nullptr ? found->as_text() : std::nullopt;
  return digits ? lease_from_hex(*digits) : std::nullopt;
}

}  // namespace

// This reply is on the hot path, so it is built in one small buffer and appended once. Field by
// field it took an eighth of the instructions of an acquire-release cycle.
void write_grant(ReplyWriter& reply, const GrantReply& grant) {
  const bool resp3 = reply.protocol() == Protocol::kResp3;
  LineBuffer line;
  line.text(resp3 ? "%6\r\n$5\r\nlease\r\n$32\r\n" : "*12\r\n$5\r\nlease\r\n$32\r\n");
  line.hex(grant.lease);
  line.text("\r\n$5\r\ntoken\r\n:");
  line.number(grant.token.value);
  line.text("\r\n$5\r\nfloor\r\n:");
  line.number(grant.floor.value);
  line.text("\r\n$4\r\nslot\r\n");
  if (grant.slot) {
    line.text(":");
    line.number(*grant.slot);
  } else {
    line.text(resp3 ? "_" : "$-1");
  }
  line.text("\r\n$6\r\nttl_ms\r\n:");
  line.number(static_cast<std::uint64_t>(grant.ttl.count()));
  line.text("\r\n$9\r\nwaited_ms\r\n:");
  line.number(static_cast<std::uint64_t>(grant.waited.count()));
  line.text("\r\n");
  reply.raw(line.view());
}

void write_queued(ReplyWriter& reply, const QueuedReply& queued) {
  reply.map(2);
  reply.field("state", "queued");
  reply.field("position", queued.position);
}

Result<GrantReply> read_grant(const Value& value) {
  if (value.is_error()) return error_from_line(value.text);
  constexpr auto kMillisMax = static_cast<std::uint64_t>(limits::kMaxHoldMax.count());
  const auto lease = lease_in(value);
  const auto token = number_in(value, "token", limits::kTokenMax);
  const auto floor = number_in(value, "floor", limits::kTokenMax);
  const auto ttl = number_in(value, "ttl_ms", kMillisMax);
  const auto waited = number_in(value, "waited_ms", kMillisMax);
  const Value* slot = value.find("slot");
  if (!lease || !token || *token == 0 || !floor || !ttl || !waited || slot == nullptr)
    return unexpected_reply("ACQUIRE");
  GrantReply grant{*lease,       Token{*token}, Token{*floor},
                   std::nullopt, Millis(*ttl),  Millis(*waited)};
  if (!slot->is_null()) {
    const auto number = number_in(value, "slot", limits::kHoldersMax);
    if (!number) return unexpected_reply("ACQUIRE");
    grant.slot = static_cast<std::uint32_t>(*number);
  }
  return grant;
}

Result<AcquireReply> read_acquire(const Value& value) {
  if (value.is_null()) return AcquireReply{NotObtained{}};
  if (const Value* state = value.find("state"); state != nullptr && state->as_text() == "queued") {
    const auto position = number_in(value, "position", limits::kWaitersMax);
    if (!position) return unexpected_reply("ACQUIRE");
    return AcquireReply{QueuedReply{*position}};
  }
  const auto grant = read_grant(value);
  if (!grant) return grant.error();
  return AcquireReply{*grant};
}

Result<std::int64_t> read_integer(const Value& value) {
  if (value.is_error()) return error_from_line(value.text);
  if (value.kind != Value::Kind::kInteger)
    return unexpected_reply("a command with an integer reply");
  return value.integer;
}

void write_renewal(ReplyWriter& reply, const RenewalReply& renewal) {
  reply.map(2);
  reply.field("expires_in_ms", std::int64_t{renewal.expires_in.count()});
  if (!renewal.release_wanted) return reply.field_null("release_wanted");
  const ReleaseWanted& wanted = *renewal.release_wanted;
  reply.bulk("release_wanted");
  reply.map(4);
  reply.field("ask", wanted.ask);
  reply.field("lock", wanted.lock);
  reply.field("by", wanted.by);
  reply.field("reason", wanted.reason);
}

Result<RenewalReply> read_renewal(const Value& value) {
  if (value.is_error()) return error_from_line(value.text);
  const auto left =
      number_in(value, "expires_in_ms", static_cast<std::uint64_t>(limits::kMaxHoldMax.count()));
  const Value* wanted = value.find("release_wanted");
  if (!left || wanted == nullptr) return unexpected_reply("RENEW");
  RenewalReply renewal{Millis(*left)};
  if (wanted->is_null()) return renewal;
  const auto ask = number_in(*wanted, "ask", INT64_MAX);
  if (!ask) return unexpected_reply("RENEW");
  const auto text = [wanted](std::string_view key) {
    const Value* found = wanted->find(key);
    return std::string(found == nullptr ? "" : found->as_text().value_or(""));
  };
  renewal.release_wanted = ReleaseWanted{*ask, text("lock"), text("by"), text("reason")};
  return renewal;
}

void write_renewed_item(ReplyWriter& reply, const RenewedItem& item) {
  if (item.ask != 0) reply.array(2);
  reply.integer(item.expires_in ? item.expires_in->count() : -1);
  if (item.ask != 0) reply.integer(static_cast<std::int64_t>(item.ask));
}

std::optional<RenewedItem> read_renewed_item(const Value& value) {
  const bool asked = value.kind == Value::Kind::kArray;
  if (asked && value.items.size() != 2) return std::nullopt;
  const auto left = (asked ? value.items[0] : value).as_integer();
  const auto ask = asked ? value.items[1].as_integer() : std::optional<std::int64_t>(0);
  if (!left || !ask || *ask < 0) return std::nullopt;
  return RenewedItem{*left < 0 ? std::nullopt : std::optional(Millis(*left)),
                     static_cast<std::uint64_t>(*ask)};
}

std::string_view to_text(WaitEvent event) {
  switch (event) {
    case WaitEvent::kGranted:
      return "granted";
    case WaitEvent::kTimeout:
      return "timeout";
    case WaitEvent::kCancelled:
      return "cancelled";
    case WaitEvent::kSuperseded:
      return "superseded";
  }
  return "";
}

void write_wait_push(ReplyWriter& reply, WaitEvent event, std::string_view request,
                     const GrantReply* grant) {
  PAWL_ASSERT((event == WaitEvent::kGranted) == (grant != nullptr));
  reply.push(4);
  reply.bulk("pawl");
  reply.bulk(to_text(event));
  reply.bulk(request);
  if (grant != nullptr) {
    write_grant(reply, *grant);
  } else {
    reply.map(0);
  }
}

std::optional<WaitPush> read_wait_push(const Value& push) {
  if (!push.is_push() || push.items.size() != 4 || push.items[0].as_text() != "pawl")
    return std::nullopt;
  const auto request = push.items[2].as_text();
  if (!request) return std::nullopt;
  for (const WaitEvent event : kWaitEvents) {
    if (push.items[1].as_text() != to_text(event)) continue;
    WaitPush read{event, std::string(*request), std::nullopt};
    if (event != WaitEvent::kGranted) return read;
    const auto grant = read_grant(push.items[3]);
    if (!grant) return std::nullopt;
    read.grant = *grant;
    return read;
  }
  return std::nullopt;
}

}  // namespace pawl::wire
