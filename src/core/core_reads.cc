// Reads: views of locks, leases and queues, as copies.
#include <algorithm>

#include "base/mutants.h"
#include "core/core.h"
#include "core/records.h"

namespace pawl::core {
namespace {

constexpr std::size_t kQueueShown = 16;
constexpr Index kListScan = 10'000;  // Slots one LOCKS call looks at, at most.

Millis not_negative(Nanos duration) {
  return std::max(Millis(0), std::chrono::floor<Millis>(duration));
}

}  // namespace

LeaseRecord Core::record_of(const Lease& lease) const {
  LeaseRecord record = holders_.record_of(lease);
  const Index request = lease.extra == nullptr ? kNone : lease.extra->request;
  if (request != kNone && !PAWL_MUTANT(request_not_persisted))
    record.request = requests_.items[request].id.view();
  return record;
}

void Core::write_state(Batch& out) const {
  out.clear();
  changes_.write_last_token(out);
  if (restore_wait_.active()) out.put(kRestoredKey, encode_restored(restore_wait_.whole()));
  std::string value;
  const Slab<Lease>& leases = holders_.leases.items;
  for (Index index = 0; index < leases.end(); ++index) {
    if (leases[index].phase == Phase::kUnused) continue;
    encode(record_of(leases[index]), value);
    out.put(lease_key(leases[index].token), value);
  }
}

std::string_view to_text(LockState state) {
  switch (state) {
    case LockState::kFree:
      return "free";
    case LockState::kHeld:
      return "held";
    case LockState::kClosed:
      return "closed";
  }
  return "unknown";
}

HolderView Core::holder_view(const Lease& lease, Now now) const {
  HolderView view;
  view.token = lease.token;
  view.owner = lease.owner.view();
  view.mode = lease.mode;
  view.limit = lease.limit;
  if (lease.mode == Mode::kLimit) view.slot = lease.slot;
  for (const Index lock : holders_.locks_of(lease))
    view.locks.emplace_back(holders_.locks.items[lock].name.view());
  const bool forward = now.wall > lease.granted;  // The wall clock may have gone back.
  view.held = Millis(forward ? static_cast<std::int64_t>(now.wall.value - lease.granted.value) : 0);
  view.expires_in = lease.ends == kNever ? lease.ttl() : not_negative(lease.ends - now.tick);
  view.renewals = lease.renewals;
  view.breaking = lease.phase == Phase::kBreaking;
  if (lease.extra != nullptr && !lease.extra->meta.empty())
    view.meta = decode_meta(lease.extra->meta);
  return view;
}

LockView Core::view(Index index, HoldersPage page, Now now) const {
  const Slab<Lease>& leases = holders_.leases.items;
  const Lock& lock = holders_.locks.items[index];
  LockView view;
  view.lock = lock.name.view();
  view.last_token = history_.last_token(lock.name.view());
  view.holder_count = lock.holders - closed_.on(index);
  // In order of token, so the last one has the greatest.
  if (lock.last_holder != kNone)
    view.last_token = std::max(view.last_token, std::optional(leases[lock.last_holder].token));
  if (view.holder_count > 0) {
    view.state = LockState::kHeld;
    Index last = lock.last_holder;
    for (; !leases[last].live(); last = leases[last].holder_before) work_.add();
    view.token = leases[last].token;
  } else if (lock.holders > 0) {
    view.state = LockState::kClosed;
    Tick reopens{};
    for (Index i = lock.first_holder; i != kNone; i = leases[i].holder_after) {
      reopens = std::max(reopens, leases[i].ends);
      work_.add();
    }
    view.reopens_in = not_negative(reopens - now.tick);
  }
  for (Index i = lock.first_holder; i != kNone && view.holders.size() < page.count;
       i = leases[i].holder_after) {
    work_.add();
    if (leases[i].live() && leases[i].token > page.after)
      view.holders.push_back(holder_view(leases[i], now));
  }
  view.waiters = lock.waiters;
  for (Index i = lock.first_waiter; i != kNone && view.queue.size() < kQueueShown;
       i = waiters_.places[i].after) {
    const Waiter& waiter = waiters_.items[waiters_.places[i].waiter];
    view.queue.push_back(WaiterView{std::string(waiter.owner.view()), waiter.terms.mode,
                                    not_negative(now.tick - waiter.arrived)});
  }
  return view;
}

Index Core::asked_lock(const Lease& lease) const {
  Index newest = kNone;
  std::uint64_t number = 0;
  for (const Index lock : holders_.locks_of(lease)) {
    const LockAsk* ask = asks_.find(lock);
    if (ask == nullptr || lease.token > ask->newest || ask->number < number) continue;
    newest = lock;
    number = ask->number;
  }
  return newest;
}

std::optional<AskView> Core::ask_for(LeaseId id) const {
  const Index index = holders_.leases.find(id);
  const Index lock = index == kNone ? kNone : asked_lock(holders_.leases.items[index]);
  if (lock == kNone) return std::nullopt;
  const LockAsk& ask = *asks_.find(lock);
  return AskView{ask.number, std::string(holders_.locks.items[lock].name.view()), ask.by,
                 ask.reason};
}

LockView Core::inspect(std::string_view lock, Now now, HoldersPage page) const {
  const Index index = holders_.locks.find(lock);
  if (index != kNone) return view(index, page, now);
  LockView view;
  view.lock = lock;
  view.last_token = history_.last_token(lock);
  return view;
}

// The cursor is a slot number. A lock never changes its slot, so whatever stays throughout is seen
// exactly once.
LocksPage Core::list(std::string_view prefix, std::uint64_t cursor, std::size_t count, Now now,
                     const NameFilter& visible) const {
  const Slab<Lock>& items = holders_.locks.items;
  LocksPage page;
  if (cursor >= items.end()) return page;
  const auto start = static_cast<Index>(cursor);
  const Index stop = items.end() - start > kListScan ? start + kListScan : items.end();
  Index at = start;
  for (; at < stop && page.locks.size() < count; ++at) {
    if (!items[at].in_use() || !items[at].name.view().starts_with(prefix)) continue;
    if (visible && !visible(items[at].name.view())) continue;
    page.locks.push_back(view(at, {}, now));
  }
  work_.add(at - start);
  page.cursor = at < items.end() ? at : 0;
  return page;
}

std::vector<EpochView> Core::history(std::string_view lock, std::size_t count) const {
  std::vector<EpochView> epochs = history_.of(lock, count);
  work_.add(epochs.size());
  return epochs;
}

std::optional<WaiterId> Core::waiting_as(std::string_view id) const {
  const Index index = id.empty() ? kNone : requests_.find(id);
  if (index == kNone) return std::nullopt;
  const Request& request = requests_.items[index];
  if (request.state != Request::State::kWaiting) return std::nullopt;
  return waiters_.items[request.subject].id;
}

Totals Core::totals() const {
  const LeaseTable& leases = holders_.leases;
  Totals totals;
  totals.last_token = changes_.last_token();
  if (leases.oldest() != kNone) totals.oldest_live_token = leases.items[leases.oldest()].token;
  totals.locks = holders_.locks.items.size();
  totals.closed = closed_.total();
  totals.leases = leases.live();
  totals.waiters = waiters_.items.size();
  return totals;
}

}  // namespace pawl::core
