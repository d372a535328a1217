#include "core/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/mutants.h"

namespace pawl::core {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr char kLeasePrefix = 'L';

Error damage(std::string_view what) {
  return Error{Code::kInvalid, fmt::format("lease record: {}", what)};
}

std::string_view to_text(Phase phase) {
  switch (phase) {
    case Phase::kLive:
      return "live";
    case Phase::kBreaking:
      return "breaking";
    case Phase::kClosed:
      return "closed";
    case Phase::kUnused:
      break;
  }
  return "unused";
}

std::string_view to_text(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "exclusive";
    case Mode::kShared:
      return "shared";
    case Mode::kLimit:
      return "limit";
  }
  return "?";
}

// Walks the pairs; the bytes they take, or nothing when they are not whole.
bool skip_meta(ByteReader& in) {
  const std::uint8_t pairs = in.u8();
  for (int i = 0; i < 2 * pairs; ++i) in.text();
  return in.ok() && pairs <= limits::kMetaPairs;
}

bool valid_place(const LeaseRecord& r) {
  const bool one_lock = r.locks.size() == 1;
  const LeaseTerms& terms = r.terms;
  if (terms.mode == Mode::kLimit)
    return one_lock && terms.limit >= 1 && terms.limit <= limits::kHoldersMax &&
           r.slot < terms.limit;
  return terms.limit == 1 && r.slot == 0 && (one_lock || terms.mode == Mode::kExclusive);
}

bool valid_locks(const LeaseRecord& r) {
  if (r.locks.empty()) return false;
  if (r.locks.size() == 1) return !r.locks.front().empty();
  const std::set<std::string_view> distinct(r.locks.begin(), r.locks.end());
  return distinct.size() == r.locks.size() && !distinct.contains("");
}

bool valid(const LeaseRecord& r) {
  const bool phase = r.phase == Phase::kLive || r.phase == Phase::kBreaking ||
                     (r.phase == Phase::kClosed && r.terms.delay > Millis(0));
  const bool token = r.token.value >= 1 && r.token.value <= limits::kTokenMax;
  const LeaseTerms& terms = r.terms;
  const bool ttl = terms.ttl > Millis(0) && terms.ttl <= limits::kTtlMaxCeiling;
  const bool hold = terms.delay <= limits::kDelayMax && terms.max_hold >= Millis(0) &&
                    terms.max_hold <= limits::kMaxHoldMax;
  return phase && token && ttl && hold && terms.mode <= Mode::kLimit && valid_locks(r) &&
         valid_place(r);
}

}  // namespace

std::string lease_key(Token token) {
  std::string key(1, kLeasePrefix);
  put_u64_ordered(key, token.value);
  return key;
}

Token token_of(std::string_view lease_key) {
  return Token{ByteReader(lease_key.substr(1)).u64_ordered()};
}

bool is_lease_key(std::string_view key) {
  return key.size() == 9 && key[0] == kLeasePrefix;
}

void encode(const LeaseRecord& r, std::string& out) {
  PAWL_ASSERT(r.terms.limit <= UINT16_MAX && r.terms.ttl.count() <= UINT32_MAX);
  PAWL_ASSERT(r.terms.delay.count() <= UINT32_MAX);
  out.clear();
  FixedBytes<59> fixed;  // One append instead of thirteen: this is on the path of every grant.
  fixed.put(kVersion);
  fixed.put(static_cast<std::uint8_t>(r.phase));
  fixed.put(r.id.high);
  fixed.put(r.id.low);
  fixed.put(static_cast<std::uint8_t>(r.terms.mode));
  fixed.put(static_cast<std::uint16_t>(r.terms.limit));
  fixed.put(r.slot);
  fixed.put(static_cast<std::uint32_t>(r.terms.ttl.count()));
  fixed.put(r.waited_ms);
  fixed.put(static_cast<std::uint32_t>(r.terms.delay.count()));
  fixed.put(static_cast<std::uint64_t>(r.terms.max_hold.count()));
  fixed.put(r.granted.value);
  fixed.put(r.floor.value);
  out.append(fixed.view());
  put_text(out, r.owner);
  put_text(out, r.request);
  put_u8(out, static_cast<std::uint8_t>(r.locks.size()));
  for (const std::string_view lock : r.locks) put_text(out, lock);
  if (r.meta.empty()) {
    put_u8(out, 0);
  } else {
    out.append(r.meta);
  }
}

Result<LeaseRecord> decode_lease(std::string_view key, std::string_view value) {
  if (!is_lease_key(key)) return damage("not a lease's key");
  LeaseRecord r;
  r.token = token_of(key);
  ByteReader in(value);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion)
    return damage(fmt::format("version {} is not {}", version, kVersion));
  r.phase = static_cast<Phase>(in.u8());
  r.id.high = in.u64();
  r.id.low = in.u64();
  r.terms.mode = static_cast<Mode>(in.u8());
  r.terms.limit = in.u16();
  r.slot = in.u16();
  r.terms.ttl = Millis(in.u32());
  r.waited_ms = in.u32();
  r.terms.delay = Millis(in.u32());
  r.terms.max_hold = Millis(static_cast<std::int64_t>(in.u64()));
  r.granted.value = in.u64();
  r.floor.value = in.u64();
  r.owner = in.text();
  r.request = in.text();
  const std::uint8_t locks = in.u8();
  if (locks > limits::kLocksPerLease) return damage("too many locks");
  for (int i = 0; i < locks && in.ok(); ++i) r.locks.push_back(in.text());
  const std::string_view meta = in.rest();
  if (!skip_meta(in) || !in.done()) return damage("its length does not fit its content");
  if (meta.size() > 1) r.meta = meta;
  if (!valid(r)) return damage("a field is out of range");
  return r;
}

Result<Token> decode_last_token(std::string_view value) {
  ByteReader in(value);
  const Token token{in.u64()};
  if (!in.done() || token.value > limits::kTokenMax)
    return Error{Code::kInvalid, "last token record: out of range"};
  return token;
}

std::string encode_restored(Millis wait) {
  std::string value;
  put_u64(value, static_cast<std::uint64_t>(wait.count()));
  return value;
}

Result<Millis> decode_restored(std::string_view value) {
  ByteReader in(value);
  const std::uint64_t wait = in.u64();
  constexpr Millis kLongest = limits::kTtlMaxCeiling + limits::kDelayMax;
  if (!in.done() || wait > static_cast<std::uint64_t>(kLongest.count()))
    return Error{Code::kInvalid, "record of a restore: out of range"};
  return Millis(wait);
}

Result<RestoredRecords> restored_records(Token last, Millis wait) {
  RestoredRecords restored;
  const std::uint64_t era = last.value / limits::kTokensPerEra + 1;
  restored.last_token.value =
      PAWL_MUTANT(restore_without_new_era) ? last.value : era * limits::kTokensPerEra;
  if (restored.last_token.value >= limits::kTokenMax)
    return Error{Code::kInvalid,
                 fmt::format("tokens: there is no era after that of token {}", last.value)};
  std::string value;
  put_u64(value, restored.last_token.value);
  restored.records.emplace_back(kLastTokenKey, value);
  if (wait > Millis(0)) restored.records.emplace_back(kRestoredKey, encode_restored(wait));
  return restored;
}

std::vector<std::pair<std::string, std::string>> decode_meta(std::string_view meta) {
  std::vector<std::pair<std::string, std::string>> pairs;
  ByteReader in(meta);
  for (int left = in.u8(); left > 0; --left) {
    const std::string_view key = in.text();
    pairs.emplace_back(std::string(key), std::string(in.text()));
  }
  return pairs;
}

std::string describe(std::string_view key, std::string_view value) {
  if (key == kLastTokenKey) {
    const auto token = decode_last_token(value);
    return token ? fmt::format("last token {}", token->value) : token.error().detail;
  }
  if (key == kRestoredKey) {
    const auto wait = decode_restored(value);
    return wait ? fmt::format("restored from a backup: nothing is granted for {} ms", wait->count())
                : wait.error().detail;
  }
  const auto record = decode_lease(key, value);
  if (!record) return record.error().detail;
  return fmt::format("lease token {} {} {} on {} owner \"{}\" ttl {} ms granted {}",
                     record->token.value, to_text(record->phase), to_text(record->terms.mode),
                     fmt::join(record->locks, ", "), record->owner, record->terms.ttl.count(),
                     record->granted.value);
}

}  // namespace pawl::core
