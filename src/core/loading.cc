// Rebuilding the state from the store's records after a start.
#include <algorithm>

#include <fmt/format.h>

#include "base/mutants.h"
#include "core/state.h"

namespace pawl::core {

void Core::expect(std::uint64_t leases) {
  state_->leases.reserve(leases);
  state_->locks.reserve(leases);
  state_->loaded.reserve(leases);
}

Result<void> Core::load(std::string_view key, std::string_view value) {
  State& s = *state_;
  if (key == kLastTokenKey) {
    const auto token = decode_last_token(value);
    if (!token) return token.error();
    s.last_token = std::max(s.last_token, *token);
    return {};
  }
  if (key == kRestoredKey) {
    const auto wait = decode_restored(value);
    if (!wait) return wait.error();
    s.restored_wait = *wait;
    return {};
  }
  const auto record = decode_lease(key, value);
  if (!record) return record.error();
  return s.load_lease(*record);
}

Result<void> Core::State::load_lease(const LeaseRecord& record) {
  if (PAWL_MUTANT(leases_forgotten_by_restart)) return {};
  if (leases.find(record.id) != kNone)
    return Error{Code::kInvalid, "two lease records with one id"};
  const Index index = leases.add(record.id);
  Lease& lease = leases.items[index];
  lease.token = record.token;
  lease.granted = record.granted;
  lease.owner = Text(record.owner);
  lease.waited_ms = record.waited_ms;
  lease.slot = record.slot;
  lease.phase = record.phase;
  lease.lock = locks.find_or_add(record.locks.front());

  LeaseTerms terms = record.terms;
  if (PAWL_MUTANT(max_hold_forgotten_by_restart)) terms.max_hold = Millis(0);
  if (record.locks.size() > 1 || !record.request.empty() || !record.meta.empty() ||
      Extra::needed_for(terms)) {
    lease.extra = std::make_unique<Extra>();
    Extra& extra = *lease.extra;
    extra.floor = record.floor;
    extra.meta = record.meta;
    if (record.locks.size() > 1) {
      for (const std::string_view name : record.locks)
        extra.locks.push_back(locks.find_or_add(name));
    }
  }
  lease.set_terms(terms);
  if (!record.request.empty() && record.phase != Phase::kClosed) {
    if (requests.find(record.request) != kNone)
      return Error{Code::kInvalid, "two lease records with one request id"};
    lease.extra->request =
        requests.add_waiting(record.request, fingerprint(record.locks, terms), kNone);
    requests.granted(lease.extra->request, index, lease.token);
  }
  loaded.push_back(index);
  return {};
}

// Records come in no promised order; holders and live leases are kept in order of token.
Result<void> Core::loaded(Token high_water, Now now) {
  State& s = *state_;
  const auto by_token = [&](Index a, Index b) {
    return s.leases.items[a].token < s.leases.items[b].token;
  };
  if (!std::is_sorted(s.loaded.begin(), s.loaded.end(), by_token)) {
    std::sort(s.loaded.begin(), s.loaded.end(), by_token);
  }
  const Token newest = s.loaded.empty() ? Token{} : s.leases.items[s.loaded.back()].token;
  if (newest > s.last_token || s.last_token > high_water) {
    return Error{Code::kInvalid,
                 fmt::format("tokens contradict each other: a lease has {}, the last one recorded "
                             "is {}, reserved are "
                             "all up to {}; a part of the store is missing or from another time",
                             newest.value, s.last_token.value, high_water.value)};
  }
  if (!PAWL_MUTANT(high_water_ignored)) s.last_token = high_water;
  s.lease_timers.start(passed_ms(now.tick));
  s.waiter_timers.start(passed_ms(now.tick));
  for (const Index index : s.loaded) {
    if (const auto placed = s.place_loaded(index, now); !placed) return placed;
  }
  s.loaded = {};
  // In full again after each start: how much of it had passed before is not known.
  if (PAWL_MUTANT(restore_without_wait)) s.restored_wait = Millis(0);
  if (s.restored_wait > Millis(0)) s.grants_from = now.tick + s.restored_wait;
  if (PAWL_MUTANT(restored_wait_not_repeated)) s.batch.erase(kRestoredKey);
  return {};
}

// Every lease gets its full TTL again, and every delay starts in full (G4). Model: lease.pml,
// action restart.
Result<void> Core::State::place_loaded(Index index, Now now) {
  Lease& lease = leases.items[index];
  for (const Index lock : locks_of(lease)) {
    if (!admits(locks.items[lock], lease.mode, lease.limit)) {
      return Error{Code::kInvalid, fmt::format("token {} and an earlier one both hold \"{}\"",
                                               lease.token.value, locks.items[lock].name.view())};
    }
    if (lease.mode == Mode::kLimit && slot_taken(locks.items[lock], lease.slot)) {
      return Error{Code::kInvalid,
                   fmt::format("token {} and an earlier one have the same slot of \"{}\"",
                               lease.token.value, locks.items[lock].name.view())};
    }
    add_holder(lock, index);
  }
  if (lease.phase == Phase::kClosed) {
    leases.forget_id(index);
    closed_locks += locks_of(lease).size();
    lease.ends =
        now.tick + (PAWL_MUTANT(delay_forgotten_by_restart) ? Millis(0) : lease.extra->delay);
  } else {
    leases.link_youngest(index);
    start_ttl(lease, now.tick - (PAWL_MUTANT(restart_shortens_ttl) ? lease.ttl() / 4 : Millis(0)));
  }
  arm(index);
  return {};
}

}  // namespace pawl::core
