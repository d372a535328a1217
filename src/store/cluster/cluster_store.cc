#include "store/cluster/cluster_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::store::cluster {

using Outcome = SharedLog::WriteAnswer::Outcome;

ClusterStore::ClusterStore(ClusterSettings settings, SharedLog& log, Random& random,
                           std::function<Nanos()> boot_clock)
    : settings_(std::move(settings)), log_(log), random_(random), clock_(std::move(boot_clock)) {
  log_.listen(this);
}

// --- Timers --------------------------------------------------------------------------------------

void ClusterStore::on_timer() {
  if (failure_) return;
  const Nanos now = clock_();
  if (pending_) {
    if (!pending_->sent && now >= pending_->resend_at) {
      pending_->sent = true;
      log_.write(pending_->write);  // The same bytes: they cannot apply twice.
    }
  } else if (role_ == Role::kActive || role_ == Role::kCompleting) {
    Head next = next_head();
    const bool resign = resigning_ && durable_.empty();
    if (resign) next.state = Head::State::kResigned;
    if (resign || now >= last_sent_ + settings_.heartbeat) send(next, nullptr, std::nullopt);
  } else if (may_claim(now)) {
    claim();
  }
  if (role_ != Role::kActive && !reading_from_ && now >= read_at_) read_on();
}

Nanos ClusterStore::next_timer() const {
  if (failure_) return Nanos::max();
  Nanos next = Nanos::max();
  if (pending_) {
    if (!pending_->sent) next = pending_->resend_at;
  } else if (role_ == Role::kActive || role_ == Role::kCompleting) {
    next = resigning_ && durable_.empty() ? Nanos(0) : last_sent_ + settings_.heartbeat;
  } else if (role_ == Role::kStandby && head_bytes_) {
    next = may_claim(head_since_) ? Nanos(0) : head_since_ + settings_.role_ttl + jitter_;
  }
  if (role_ != Role::kActive && !reading_from_) next = std::min(next, read_at_);
  return next;
}

// --- Writing -------------------------------------------------------------------------------------

Head ClusterStore::next_head() const {
  Head next = head_;
  ++next.number;
  return next;
}

void ClusterStore::send(Head head, const Batch* batch, std::optional<BatchId> id) {
  PAWL_ASSERT(!pending_);
  Pending pending;
  pending.write.expected = *head_bytes_;
  if (PAWL_MUTANT(epoch_not_compared) && role_ == Role::kActive)
    pending.write.expected = std::nullopt;
  if (batch != nullptr) {
    head.covered = std::max(head.covered, batch->covered());
    pending.write.entry = ++head.last;
    pending.write.bytes = batch->bytes();
    pending.batches = {*id};
  }
  // Once a resignation has left, another one may take over at any moment, whether or not it is
  // confirmed here: nothing is answered from memory any more.
  if (head.state == Head::State::kResigned) window_end_ = Nanos(0);
  pending.write.head = encode(head);
  pending.head = std::move(head);
  pending.sent = true;
  // Read before the write leaves: the window is counted from here, however often it is sent again.
  pending.first_sent = last_sent_ = clock_();
  pending_ = std::move(pending);
  log_.write(pending_->write);
}

bool ClusterStore::ready() const {
  if (PAWL_MUTANT(unknown_taken_for_failure) && pending_ && !pending_->sent)
    return role_ == Role::kActive && !pending_->batches.empty();
  return role_ == Role::kActive && !pending_ && !resigning_ && !failure_;
}

void ClusterStore::submit(const Batch& batch, BatchId id, Sink& /*sink*/) {
  PAWL_ASSERT(ready() && may_serve_);
  if (PAWL_MUTANT(unknown_taken_for_failure) && pending_) {
    // "It failed, so it is tried again together with what has come since."
    pending_->head.covered = std::max(pending_->head.covered, batch.covered());
    pending_->write.bytes += batch.bytes();
    pending_->write.head = encode(pending_->head);
    pending_->batches.push_back(id);
    return;
  }
  send(next_head(), &batch, id);
}

void ClusterStore::written(const SharedLog::WriteAnswer& answer) {
  PAWL_ASSERT(pending_ && pending_->sent);
  pending_->sent = false;
  if (answer.outcome == Outcome::kUnknown && !PAWL_MUTANT(unknown_taken_for_success)) {
    pending_->resend_at = clock_() + settings_.resend_pause;
    if (PAWL_MUTANT(unknown_taken_for_failure)) wake();
    return;
  }
  // Our own head is there: an earlier send was applied.
  if (answer.outcome == Outcome::kRefused && answer.found != pending_->write.head)
    return refused(answer.found);
  confirmed();
}

void ClusterStore::confirmed() {
  Pending done = *std::exchange(pending_, std::nullopt);
  head_bytes_ = std::move(done.write.head);
  head_ = std::move(done.head);
  durable_.insert(durable_.end(), done.batches.begin(), done.batches.end());
  if (head_.state == Head::State::kResigned) {
    become_standby();
    resigned_myself_ = true;
    deposed_ = Active{.address = "", .epoch = head_.epoch};
    return wake();
  }
  const Nanos margin = std::max<Nanos>(std::chrono::milliseconds(20), settings_.role_ttl / 100);
  window_end_ = done.first_sent + settings_.role_ttl / 100 * 99 - margin;
  if (role_ == Role::kClaiming) {
    role_ = Role::kCompleting;
    if (copied_ >= head_.last || PAWL_MUTANT(takeover_with_a_stale_copy)) {
      begin_to_serve();
    } else if (!reading_from_) {
      read_on();
    }
  }
  wake();
}

void ClusterStore::refused(const std::string& found) {
  const auto head = found.empty() ? Result<Head>(Head{}) : decode_head(found);
  if (!head) return fail(head.error());
  const bool was_active = role_ == Role::kActive || role_ == Role::kCompleting;
  if (was_active && (found.empty() || head->same_writer(head_))) {
    return fail(Error{Code::kInvalid,
                      "the shared log went back to an earlier state under this pawld: it was "
                      "restored from a snapshot, or lost. Stop every pawld of this cluster, and "
                      "restore a backup of Pawl instead"});
  }
  pending_.reset();
  become_standby();
  observe(found);
}

// --- The role ------------------------------------------------------------------------------------

void ClusterStore::begin_to_serve() {
  PAWL_ASSERT(role_ == Role::kCompleting);
  role_ = Role::kActive;  // If the last time has ended unseen by pump(), that is reported first.
  wake();
}

void ClusterStore::become_standby() {
  if (role_ == Role::kActive) {  // The copy was given away, or is no longer complete.
    copy_.clear();
    copied_ = 0;
  }
  role_ = Role::kStandby;
  resigning_ = resigned_myself_ = false;
  window_end_ = Nanos(0);
  head_since_ = clock_();
  read_at_ = head_since_;
  jitter_ = Nanos(static_cast<Nanos::rep>(
      random_.below(static_cast<std::uint64_t>(settings_.jitter.count()) + 1)));
}

// A standby received the head.
void ClusterStore::observe(const std::string& head) {
  if (head_bytes_ == head) return;
  const auto decoded = head.empty() ? Result<Head>(Head{}) : decode_head(head);
  if (!decoded) return fail(decoded.error());
  head_since_ = clock_();
  resigned_myself_ = false;
  const bool another = !head_bytes_ || !decoded->same_writer(head_) || may_serve_;
  head_bytes_ = head;
  head_ = *decoded;
  if (!another || (head.empty() && !may_serve_)) return;
  deposed_ = Active{.address = head_.address, .epoch = head_.epoch};
  wake();
}

bool ClusterStore::may_claim(Nanos now) const {
  if (role_ != Role::kStandby || !head_bytes_ || pending_) return false;
  if (head_bytes_->empty()) return true;
  if (head_.state == Head::State::kResigned && !resigned_myself_) return true;
  const Nanos wait = PAWL_MUTANT(takeover_too_soon) ? settings_.role_ttl / 3 : settings_.role_ttl;
  return now - head_since_ >= wait + jitter_;
}

void ClusterStore::claim() {
  Head next = next_head();
  if (head_bytes_->empty()) next.incarnation = Incarnation{random_.next()};
  ++next.epoch;
  next.writer[0] = random_.next();
  next.writer[1] = random_.next();
  next.state = Head::State::kActive;
  next.address = settings_.address;
  role_ = Role::kClaiming;
  send(std::move(next), nullptr, std::nullopt);
}

// --- Reading -------------------------------------------------------------------------------------

void ClusterStore::read_on() {
  reading_from_ = copied_ + 1;
  log_.read(*reading_from_);
}

void ClusterStore::read(const SharedLog::ReadAnswer& answer) {
  PAWL_ASSERT(reading_from_);
  const bool fits = *std::exchange(reading_from_, std::nullopt) == copied_ + 1;
  read_at_ = clock_() + settings_.poll;
  if (failure_ || role_ == Role::kActive) return;
  if (answer.known && fits) {
    for (const std::string& entry : answer.entries) {
      if (const auto applied = apply(entry); !applied) return fail(applied.error());
      ++copied_;
    }
  }
  if (answer.known && role_ == Role::kStandby) observe(answer.head);
  if (role_ != Role::kCompleting) return;
  if (copied_ >= head_.last) return begin_to_serve();
  read_at_ = answer.known ? Nanos(0) : clock_() + settings_.resend_pause;
}

Result<void> ClusterStore::apply(std::string_view entry) {
  while (!entry.empty()) {
    const auto operation = take_operation(entry);
    if (!operation) return operation.error();
    if (operation->put) {
      copy_.insert_or_assign(std::string(operation->key), std::string(operation->value));
    } else if (const auto found = copy_.find(operation->key); found != copy_.end()) {
      copy_.erase(found);
    }
  }
  return {};
}

// --- Store ---------------------------------------------------------------------------------------

Result<Loaded> ClusterStore::load(Visitor& visitor) {
  PAWL_ASSERT(role_ == Role::kActive && may_serve_);
  const auto records = std::exchange(copy_, {});
  visitor.expect(records.size());
  for (const auto& [key, value] : records) {
    if (auto seen = visitor.record(key, value); !seen) return seen.error();
  }
  return Loaded{.incarnation = head_.incarnation,
                .high_water = head_.covered,
                .sequence = head_.last,
                .fresh = head_.last == 0,
                .clean = false,
                .epoch = head_.epoch};
}

void ClusterStore::pump(Sink& sink) {
  if (failure_) return sink.failed(BatchId{}, *failure_);
  if (const auto deposed = std::exchange(deposed_, std::nullopt)) {
    may_serve_ = false;
    durable_.clear();
    sink.deposed(*deposed);
  }
  for (const BatchId batch : std::exchange(durable_, {})) sink.durable(batch);
  // A takeover that is confirmed late may be over again: the next heartbeat tells.
  if (role_ == Role::kActive && clock_() < window_end_) may_serve_ = true;
}

void ClusterStore::fail(Error error) {
  failure_ = std::move(error);
  window_end_ = Nanos(0);
  wake();
}

void ClusterStore::wake() const {
  if (waker_ != nullptr) waker_->wake();
}

}  // namespace pawl::store::cluster
