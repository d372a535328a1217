#include "wire/acquire_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace pawl::wire {
namespace {

using Given = std::optional<std::uint64_t>;

constexpr std::uint64_t count(Millis duration) {
  return static_cast<std::uint64_t>(duration.count());
}

// A duration is written unless it is 0.
constexpr Given unless_zero(Millis duration) {
  return duration > Millis(0) ? Given(count(duration)) : std::nullopt;
}

// A flag is written as its word alone.
constexpr Given when(bool given) {
  return given ? Given(1) : std::nullopt;
}

constexpr std::array kOptions{
    AcquireOption{
        .word = "TTL",
        .argument = "ms",
        .kind = OptionKind::kMillis,
        .min = count(limits::kTtlMin),
        .max = count(limits::kTtlMaxCeiling),
        .get = [](const AcquireSpec& spec) -> Given { return count(spec.terms.ttl); },
        .set = [](AcquireSpec& spec, std::uint64_t ms) { spec.terms.ttl = Millis(ms); },
        .member = "ttl_ms",
        .description = "how long it lives without being renewed; at most max_ttl_ms of the "
                       "configuration (default 600000)",
    },
    AcquireOption{
        .word = "WAIT",
        .argument = "ms",
        .kind = OptionKind::kMillis,
        .max = count(limits::kWaitMax),
        .get = [](const AcquireSpec& spec) -> Given {
          return spec.async ? Given(count(spec.wait)) : unless_zero(spec.wait);
        },
        .set = [](AcquireSpec& spec, std::uint64_t ms) { spec.wait = Millis(ms); },
        .member = "wait_ms",
        .http_max = count(limits::kHttpWaitMax),
        .omitted = 0,
        .description = "how long to wait in line; 0: not at all",
    },
    AcquireOption{
        .word = "ASYNC",
        .kind = OptionKind::kFlag,
        .get = [](const AcquireSpec& spec) { return when(spec.async); },
        .set = [](AcquireSpec& spec, std::uint64_t) { spec.async = true; },
    },
    AcquireOption{
        .word = "SHARED",
        .kind = OptionKind::kFlag,
        .get = [](const AcquireSpec& spec) { return when(spec.terms.mode == Mode::kShared); },
        .set = [](AcquireSpec& spec, std::uint64_t) { spec.terms.mode = Mode::kShared; },
        .member = "shared",
        .omitted = 0,
        .description = "as a reader among readers",
    },
    AcquireOption{
        .word = "LIMIT",
        .argument = "n",
        .kind = OptionKind::kNumber,
        .min = 1,
        .max = limits::kHoldersMax,
        .get = [](const AcquireSpec& spec) -> Given {
          return spec.terms.mode == Mode::kLimit ? Given(spec.terms.limit) : std::nullopt;
        },
        .set =
            [](AcquireSpec& spec, std::uint64_t holders) {
              spec.terms.mode = Mode::kLimit;
              spec.terms.limit = static_cast<std::uint32_t>(holders);
            },
        .member = "limit",
        .omitted = 1,
        .description = "how many holders the lock may have at a time; 1: exclusively",
    },
    AcquireOption{
        .word = "OWNER",
        .argument = "text",
        .kind = OptionKind::kText,
        .min = 1,
        .max = limits::kOwnerMax,
        .text = &AcquireSpec::owner,
        .member = "owner",
        .description = "a label for people; proves nothing",
    },
    AcquireOption{
        .word = "REQUEST",
        .argument = "id",
        .kind = OptionKind::kRequestId,
        .text = &AcquireSpec::request,
    },
    AcquireOption{
        .word = "DELAY",
        .argument = "ms",
        .kind = OptionKind::kMillis,
        .max = count(limits::kDelayMax),
        .get = [](const AcquireSpec& spec) { return unless_zero(spec.terms.delay); },
        .set = [](AcquireSpec& spec, std::uint64_t ms) { spec.terms.delay = Millis(ms); },
        .member = "delay_ms",
        .omitted = 0,
        .description = "how long the lock stays closed after a lease that was not released",
    },
    AcquireOption{
        .word = "MAXHOLD",
        .argument = "ms",
        .kind = OptionKind::kMillis,
        .max = count(limits::kMaxHoldMax),
        .get = [](const AcquireSpec& spec) { return unless_zero(spec.terms.max_hold); },
        .set = [](AcquireSpec& spec, std::uint64_t ms) { spec.terms.max_hold = Millis(ms); },
        .member = "max_hold_ms",
        .omitted = 0,
        .description = "after this time the lease ends, however often it is renewed; at least "
                       "ttl_ms. 0: no cap",
    },
    AcquireOption{
        .word = "META",
        .argument = "key value",
        .kind = OptionKind::kMeta,
        .member = "meta",
        .description = "shown with the lock; at most 1024 bytes in all",
    },
};

// The parser keeps one bit per row, and knows some of them by name.
constexpr std::size_t row_of(std::string_view word) {
  return static_cast<std::size_t>(
      std::find_if(kOptions.begin(), kOptions.end(),
                   [&](const AcquireOption& option) { return option.word == word; }) -
      kOptions.begin());
}
constexpr std::size_t kTtl = row_of("TTL");
constexpr std::size_t kWait = row_of("WAIT");
constexpr std::size_t kShared = row_of("SHARED");
constexpr std::size_t kLimit = row_of("LIMIT");

// Which options were given.
class GivenOptions {
 public:
  void add(std::size_t row) { rows_ |= std::uint32_t{1} << row; }
  [[nodiscard]] bool has(std::size_t row) const { return (rows_ >> row & 1) != 0; }

 private:
  std::uint32_t rows_ = 0;
};
static_assert(kOptions.size() <= 32);

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

// The argument of one option, into `spec`.
void parse_argument(ArgReader& in, const AcquireOption& option, AcquireSpec& spec, Millis ttl_max) {
  switch (option.kind) {
    case OptionKind::kMillis: {
      const Millis max = &option == &kOptions[kTtl] ? ttl_max : Millis(option.max);
      return option.set(spec, count(in.millis(option.word, Millis(option.min), max)));
    }
    case OptionKind::kNumber:
      return option.set(spec, in.number(option.word, {option.min, option.max}));
    case OptionKind::kFlag:
      return option.set(spec, 1);
    case OptionKind::kText:
      spec.*option.text = in.text(option.word, {option.min, option.max});
      return;
    case OptionKind::kRequestId:
      spec.*option.text = in.request_id();
      return;
    case OptionKind::kMeta:
      return parse_meta(in, spec);
  }
}

void parse_option(ArgReader& in, AcquireSpec& spec, GivenOptions& given, Millis ttl_max) {
  for (std::size_t row = 0; row < kOptions.size(); ++row) {
    const AcquireOption& option = kOptions[row];
    if (!in.repeated_option(option.word)) continue;
    if (given.has(row) && option.kind != OptionKind::kMeta) return in.refuse_twice(option.word);
    given.add(row);
    return parse_argument(in, option, spec, ttl_max);
  }
  in.refuse_rest();
}

// What only the whole command can tell.
void check_together(ArgReader& in, const AcquireSpec& spec, const GivenOptions& given,
                    Protocol protocol) {
  const auto refuse = [&](std::string text) { in.refuse(ErrorCode::kErr, std::move(text)); };
  const bool shared = given.has(kShared);
  const bool limit = given.has(kLimit);
  if (!given.has(kTtl)) return refuse("ACQUIRE needs TTL ms");
  if (shared && limit) return refuse("SHARED and LIMIT exclude each other");
  if (spec.locks.size() > 1 && (shared || limit)) {
    return refuse("AND takes exclusive locks: it excludes SHARED and LIMIT");
  }
  if (spec.async && !given.has(kWait)) return refuse("ASYNC needs WAIT ms");
  if (spec.async && spec.request.empty()) return refuse("ASYNC needs REQUEST id");
  if (spec.async && protocol != Protocol::kResp3)
    return refuse("ASYNC needs RESP3: send HELLO 3 first");
  if (spec.terms.max_hold > Millis{0} && spec.terms.max_hold < spec.terms.ttl) {
    return refuse(fmt::format("MAXHOLD must be 0 (no cap), or {} (the TTL) to {} ms, got {}",
                              spec.terms.ttl.count(), limits::kMaxHoldMax.count(),
                              spec.terms.max_hold.count()));
  }
}

}  // namespace

std::span<const AcquireOption> acquire_options() {
  return kOptions;
}

void parse_acquire(ArgReader& in, AcquireSpec& spec, Millis ttl_max, Protocol protocol) {
  GivenOptions given;
  parse_locks(in, spec);
  while (in.more()) parse_option(in, spec, given, ttl_max);
  if (in.ok()) check_together(in, spec, given, protocol);
}

}  // namespace pawl::wire
