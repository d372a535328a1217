#include "wire/acquire_parser.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace pawl::wire {
namespace {

// Which options were given, where the value alone does not say.
struct Given {
  bool ttl = false;
  bool wait = false;
  bool shared = false;
  bool limit = false;
};

void parse_locks(ArgReader& in, AcquireSpec& spec) {
  spec.locks.push_back(in.lock());
  while (in.repeated_option("AND")) {
    if (spec.locks.full()) {
      in.refuse(ErrorCode::kTooLong,
                fmt::format("AND takes at most {} locks in all", limits::kLocksPerLease));
      return;
    }
    const std::string_view lock = in.lock();
    if (!in.ok()) return;
    if (spec.locks.contains(lock)) return in.refuse(ErrorCode::kErr, "AND names a lock twice");
    spec.locks.push_back(lock);
  }
}

void parse_meta(ArgReader& in, AcquireSpec& spec) {
  if (spec.meta.full()) {
    return in.refuse(ErrorCode::kTooLong,
                     fmt::format("META takes at most {} pairs", limits::kMetaPairs));
  }
  const std::string_view key = in.text("META key", {1, limits::kMetaBytes});
  const std::string_view value = in.text("META value", {0, limits::kMetaBytes});
  if (!in.ok()) return;
  std::size_t bytes = key.size() + value.size();
  for (const MetaPair& pair : spec.meta) {
    if (pair.key == key) return in.refuse(ErrorCode::kErr, "META names a key twice");
    bytes += pair.key.size() + pair.value.size();
  }
  if (bytes > limits::kMetaBytes) {
    return in.refuse(ErrorCode::kTooLong,
                     fmt::format("META takes at most {} bytes in all", limits::kMetaBytes));
  }
  spec.meta.push_back({key, value});
}

void parse_option(ArgReader& in, AcquireSpec& spec, Given& given, Millis ttl_max) {
  if (in.option("TTL")) {
    given.ttl = true;
    spec.ttl = in.millis("TTL", limits::kTtlMin, ttl_max);
  } else if (in.option("WAIT")) {
    given.wait = true;
    spec.wait = in.millis("WAIT", Millis{0}, limits::kWaitMax);
  } else if (in.option("ASYNC")) {
    spec.async = true;
  } else if (in.option("SHARED")) {
    given.shared = true;
    spec.mode = Mode::kShared;
  } else if (in.option("LIMIT")) {
    given.limit = true;
    spec.mode = Mode::kLimit;
    spec.limit = static_cast<std::uint32_t>(in.number("LIMIT", {1, limits::kHoldersMax}));
  } else if (in.option("OWNER")) {
    spec.owner = in.text("OWNER", {1, limits::kOwnerMax});
  } else if (in.option("REQUEST")) {
    spec.request = in.request_id();
  } else if (in.option("DELAY")) {
    spec.delay = in.millis("DELAY", Millis{0}, limits::kDelayMax);
  } else if (in.option("MAXHOLD")) {
    spec.max_hold = in.millis("MAXHOLD", Millis{0}, limits::kMaxHoldMax);
  } else if (in.repeated_option("META")) {
    parse_meta(in, spec);
  } else {
    in.refuse_rest();
  }
}

// What only the whole command can tell.
void check_together(ArgReader& in, const AcquireSpec& spec, const Given& given, Protocol protocol) {
  const auto refuse = [&](std::string text) { in.refuse(ErrorCode::kErr, std::move(text)); };
  if (!given.ttl) return refuse("ACQUIRE needs TTL ms");
  if (given.shared && given.limit) return refuse("SHARED and LIMIT exclude each other");
  if (spec.locks.size() > 1 && (given.shared || given.limit)) {
    return refuse("AND takes exclusive locks: it excludes SHARED and LIMIT");
  }
  if (spec.async && !given.wait) return refuse("ASYNC needs WAIT ms");
  if (spec.async && spec.request.empty()) return refuse("ASYNC needs REQUEST id");
  if (spec.async && protocol != Protocol::kResp3)
    return refuse("ASYNC needs RESP3: send HELLO 3 first");
  if (spec.max_hold > Millis{0} && spec.max_hold < spec.ttl) {
    return refuse(fmt::format("MAXHOLD must be 0 (no cap), or {} (the TTL) to {} ms, got {}",
                              spec.ttl.count(), limits::kMaxHoldMax.count(),
                              spec.max_hold.count()));
  }
}

}  // namespace

void parse_acquire(ArgReader& in, AcquireSpec& spec, Millis ttl_max, Protocol protocol) {
  Given given;
  parse_locks(in, spec);
  while (in.more()) parse_option(in, spec, given, ttl_max);
  if (in.ok()) check_together(in, spec, given, protocol);
}

}  // namespace pawl::wire
