// Rebuilding the core from the store's records after a start.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutants.h"
#include "core/core.h"

namespace pawl::core {
namespace {

// Tokens are dense; a hash table wants them spread.
std::uint64_t hash_of(Token token) {
  return token.value * 0x9E3779B97F4A7C15U;
}

}  // namespace

void Core::expect(std::uint64_t leases) {
  holders_.leases.reserve(leases);
  holders_.locks.reserve(leases);
  loaded_.reserve(leases);
}

Result<void> Core::load(std::string_view key, std::string_view value) {
  if (key == kLastTokenKey) {
    const auto token = decode_last_token(value);
    if (!token) return token.error();
    changes_.load_token(*token);
    return {};
  }
  if (key == kRestoredKey) {
    const auto wait = decode_restored(value);
    if (!wait) return wait.error();
    if (!PAWL_MUTANT(restore_without_wait)) restore_wait_.load(*wait);
    return {};
  }
  const auto record = decode_lease(key, value);
  if (!record) return record.error();
  if (const Index before = find_loaded(record->token); before != kNone) unload_lease(before);
  return load_lease(*record);
}

void Core::unload(std::string_view key) {
  if (key == kRestoredKey) return restore_wait_.load(Millis(0));
  if (!is_lease_key(key)) return;
  if (const Index index = find_loaded(token_of(key)); index != kNone) unload_lease(index);
}

void Core::unload_all() {
  const Options options = options_;
  std::destroy_at(this);
  std::construct_at(this, options);
}

Index Core::find_loaded(Token token) const {
  return loaded_.find(hash_of(token),
                      [&](Index index) { return holders_.leases.items[index].token == token; });
}

Result<void> Core::load_lease(const LeaseRecord& stored) {
  if (PAWL_MUTANT(leases_forgotten_by_restart)) return {};
  LeaseRecord record = stored;
  if (PAWL_MUTANT(max_hold_forgotten_by_restart)) record.terms.max_hold = Millis(0);
  if (holders_.leases.find(record.id) != kNone)
    return Error{Code::kInvalid, "two lease records with one id"};
  Index request = kNone;
  if (!record.request.empty() && record.phase != Phase::kClosed) {
    if (requests_.find(record.request) != kNone)
      return Error{Code::kInvalid, "two lease records with one request id"};
    request = requests_.add_waiting(record.request, fingerprint(record.locks, record.terms), kNone);
  }
  ShortList<Index, limits::kLocksPerLease> locks;
  for (const std::string_view name : record.locks) {
    const Index lock = holders_.locks.find_or_add(name);
    ++holders_.locks.items[lock].holders;  // Only counted: loaded() links them in order.
    locks.push_back(lock);
  }
  const Index index = holders_.add_lease(record, {locks.begin(), locks.size()}, request);
  if (request != kNone) requests_.granted(request, index, record.token);
  // Whatever the limits are now: a lease that was granted stands.
  const std::uint32_t bytes = bytes_of(record.locks, record.owner, record.meta, record.request);
  Lease& lease = holders_.leases.items[index];
  if (lease.extra != nullptr) lease.extra->bytes = bytes;
  accounts_.add_lease(0, bytes_of(lease));
  loaded_.insert(hash_of(record.token), index);
  return {};
}

void Core::unload_lease(Index index) {
  Lease& lease = holders_.leases.items[index];
  loaded_.erase(hash_of(lease.token), index);
  accounts_.remove_lease(0, bytes_of(lease));
  if (lease.extra != nullptr && lease.extra->request != kNone)
    requests_.withdraw(lease.extra->request);
  for (const Index lock : holders_.locks_of(lease)) {
    if (--holders_.locks.items[lock].holders == 0) holders_.locks.forget(lock);
  }
  holders_.leases.forget_id(index);
  holders_.leases.items.remove(index);
}

// Records come in no promised order; holders and live leases are kept in order of token.
Result<void> Core::loaded(Token high_water, Now now) {
  const Slab<Lease>& leases = holders_.leases.items;
  std::vector<std::pair<Token, Index>> in_order;
  in_order.reserve(leases.size());
  for (Index index = 0; index < leases.end(); ++index) {
    if (leases[index].phase != Phase::kUnused) in_order.emplace_back(leases[index].token, index);
  }
  if (!std::is_sorted(in_order.begin(), in_order.end()))
    std::sort(in_order.begin(), in_order.end());
  const Token newest = in_order.empty() ? Token{} : in_order.back().first;
  const Token last = changes_.last_token();
  if (newest > last || last > high_water) {
    return Error{Code::kInvalid,
                 fmt::format("tokens contradict each other: a lease has {}, the last one recorded "
                             "is {}, reserved are all up to {}; a part of the store is missing or "
                             "from another time",
                             newest.value, last.value, high_water.value)};
  }
  // The end of what was reserved may lie beyond the last token that there is.
  if (!PAWL_MUTANT(high_water_ignored))
    changes_.load_token(std::min(high_water, Token{limits::kTokenMax}));
  lease_timers_.start(passed_ms(now.tick));
  waiters_.start(now.tick);
  for (Index lock = 0; lock < holders_.locks.items.end(); ++lock)
    holders_.locks.items[lock].holders = 0;
  for (const auto& [token, index] : in_order) {
    if (const auto placed = place_loaded(index, now); !placed) return placed;
  }
  loaded_ = {};
  restore_wait_.start(now.tick);
  if (PAWL_MUTANT(restored_wait_not_repeated)) changes_.erase_restored();
  return {};
}

// Every lease gets its full TTL again, and every delay starts in full (G4). Model: lease.pml,
// action restart.
Result<void> Core::place_loaded(Index index, Now now) {
  Lease& lease = holders_.leases.items[index];
  for (const Index lock_index : holders_.locks_of(lease)) {
    const Lock& lock = holders_.locks.items[lock_index];
    if (!holders_.admits(lock, lease.terms())) {
      return Error{Code::kInvalid, fmt::format("token {} and an earlier one both hold \"{}\"",
                                               lease.token.value, lock.name.view())};
    }
    if (lease.mode == Mode::kLimit && holders_.slot_taken(lock, lease.slot)) {
      return Error{Code::kInvalid,
                   fmt::format("token {} and an earlier one have the same slot of \"{}\"",
                               lease.token.value, lock.name.view())};
    }
    holders_.join(lock_index, index);
  }
  if (lease.phase == Phase::kClosed) {
    PAWL_ASSERT(lease.extra != nullptr && lease.extra->delay > Millis(0));
    holders_.leases.forget_id(index);
    closed_.add(holders_.locks_of(lease));
    lease.ends =
        now.tick + (PAWL_MUTANT(delay_forgotten_by_restart) ? Millis(0) : lease.extra->delay);
  } else {
    holders_.leases.link_youngest(index);
    start_ttl(lease, now.tick - (PAWL_MUTANT(restart_shortens_ttl) ? lease.ttl() / 4 : Millis(0)));
  }
  arm(index);
  return {};
}

}  // namespace pawl::core
