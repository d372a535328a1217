#include "store/cluster/cluster_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::store::cluster {

using Outcome = SharedLog::WriteAnswer::Outcome;

namespace {

// A request that is alone writes at most so much: a lease and the last token.
constexpr std::size_t kAloneOperations = 2;

}  // namespace

ClusterStore::ClusterStore(ClusterSettings settings, SharedLog& log, Random& random,
                           std::function<Nanos()> boot_clock)
    : settings_(std::move(settings)), log_(log), random_(random), clock_(std::move(boot_clock)) {
  log_.listen(this);
}

Error log_went_back() {
  return {
      Code::kInvalid,
      "the store that this cluster shares went back to an earlier state under this pawld: it was "
      "restored from a snapshot, or lost. Tokens could be issued twice: stop every pawld of this "
      "cluster, and go on as docs/how-to/run-a-cluster.md says"};
}

const Head* ClusterStore::head() const {
  return head_bytes_ && !head_bytes_->empty() ? &head_ : nullptr;
}

void ClusterStore::hand_over() {
  resigning_ = has_role();
  if (resigning_) on_timer();  // At once, unless a write is under way: then its answer continues.
}

// --- Timers --------------------------------------------------------------------------------------

void ClusterStore::on_timer() {
  if (failure_) return;
  const Nanos now = clock_();
  if (gather_until_ != Nanos(0) && now >= gather_until_) {
    gather_until_ = Nanos(0);
    wake();
  }
  if (pending_) {
    if (!pending_->sent && now >= pending_->resend_at) {
      pending_->sent = true;
      log_.write(pending_->write);  // The same bytes: they cannot apply twice.
    }
  } else if (role_ == Role::kActive || role_ == Role::kCompleting) {
    Pending next = next_write();
    if (may_resign()) next.head.state = HeadState::kResigned;
    if (may_resign() || now >= last_sent_ + settings_.heartbeat) send(std::move(next));
  } else if (may_claim(now)) {
    claim();
  }
  if (reading_ != Reading::kNothing || now < read_at_) return;
  if (role_ == Role::kActive) {
    begin_cleaning();
  } else if (unfollowed_.empty()) {
    read_on();
  }
}

Nanos ClusterStore::next_timer() const {
  if (failure_) return Nanos::max();
  Nanos next = Nanos::max();
  if (pending_) {
    if (!pending_->sent) next = pending_->resend_at;
  } else if (role_ == Role::kActive || role_ == Role::kCompleting) {
    next = may_resign() ? Nanos(0) : last_sent_ + settings_.heartbeat;
  } else if (role_ == Role::kStandby && head_bytes_ && !leaves_) {
    next = may_claim(head_since_) ? Nanos(0) : head_since_ + settings_.role_ttl + jitter_;
  }
  const bool reads = role_ != Role::kActive || (cleaning_ && !cleaning_->complete);
  if (reads && reading_ == Reading::kNothing) next = std::min(next, read_at_);
  if (gather_until_ != Nanos(0)) next = std::min(next, gather_until_);
  return next;
}

// --- Writing -------------------------------------------------------------------------------------

ClusterStore::Pending ClusterStore::next_write() const {
  Pending next;
  next.head = head_;
  ++next.head.n;
  return next;
}

void ClusterStore::add_entry(Pending& pending, std::string carried, std::string operations) const {
  Head& head = pending.head;
  pending.write.entry = head.last = head_.last + 1;
  EncodedEntry entry = encode_entry({.previous_crc = head_.last_crc,
                                     .incarnation = head.incarnation,
                                     .epoch = head.epoch,
                                     .number = head.last,
                                     .sequence = head.sequence},
                                    carried, operations);
  head.last_crc = entry.crc;
  pending.write.bytes = std::move(entry.bytes);
  pending.carried = std::move(carried);
  pending.operations = std::move(operations);
}

void ClusterStore::send(Pending pending) {
  PAWL_ASSERT(!pending_);
  pending.write.expected = *head_bytes_;
  if (PAWL_MUTANT(epoch_not_compared) && role_ == Role::kActive)
    pending.write.expected = std::nullopt;
  // Once a resignation has left, another one may take over at any moment, whether or not it is
  // confirmed here: nothing is answered from memory any more.
  if (pending.head.state == HeadState::kResigned) window_end_ = Nanos(0);
  pending.write.head = encode_head(pending.head);
  pending.sent = true;
  // Read before the write leaves: the window is counted from here, however often it is sent again.
  pending.first_sent = last_sent_ = clock_();
  pending_ = std::move(pending);
  log_.write(pending_->write);
}

bool ClusterStore::ready() const {
  if (PAWL_MUTANT(unknown_taken_for_failure) && pending_ && !pending_->sent)
    return role_ == Role::kActive && !pending_->batches.empty();
  if (role_ != Role::kActive || pending_ || resigning_ || failure_) return false;
  if (cleaning_ && !cleaning_->complete && copy_->index().must_be_cleaned()) return false;
  return gather_until_ == Nanos(0) || clock_() >= gather_until_;
}

void ClusterStore::submit(const Batch& batch, BatchId id, Sink& /*sink*/) {
  PAWL_ASSERT(ready() && may_serve_);
  if (PAWL_MUTANT(unknown_taken_for_failure) && pending_) {
    // "It failed, so it is tried again together with what has come since."
    pending_->head.covered = std::max(pending_->head.covered, batch.covered());
    add_entry(*pending_, pending_->carried, pending_->operations + std::string(batch.bytes()));
    pending_->write.head = encode_head(pending_->head);
    pending_->batches.push_back(id);
    return;
  }
  gather_until_ = Nanos(0);
  Pending next = next_write();
  next.head.covered = std::max(next.head.covered, batch.covered());
  ++next.head.sequence;
  next.batches = {id};
  next.gathers = batch.operations() > kAloneOperations;
  carry(next, batch.bytes());
  if (!failure_) send(std::move(next));
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
  read_is_old_ = true;
  durable_.insert(durable_.end(), done.batches.begin(), done.batches.end());
  if (head_.state == HeadState::kResigned) {
    become_standby();
    resigned_myself_ = true;
    deposed_ = Active{.address = "", .epoch = head_.epoch, .incarnation = head_.incarnation};
    return wake();
  }
  const Nanos margin = std::max<Nanos>(std::chrono::milliseconds(20), settings_.role_ttl / 100);
  window_end_ = done.first_sent + settings_.role_ttl / 100 * 99 - margin;
  if (role_ == Role::kClaiming) {
    role_ = Role::kCompleting;
    if (!copy_) begin_copy(head_);
    if (copy_is_complete()) {
      begin_to_serve();
    } else {
      read_at_ = Nanos(0);
      if (reading_ == Reading::kNothing && unfollowed_.empty()) read_on();
    }
  } else if (role_ == Role::kActive) {
    if (done.write.entry != 0) copy_->append(done.write.entry, done.write.bytes);
    if (done.write.delete_before != 0) {
      copy_->drop_before(done.write.delete_before);
      cleaning_.reset();
    }
    if (done.gathers && settings_.gather > Nanos(0)) gather_until_ = clock_() + settings_.gather;
    if (reading_ == Reading::kNothing) begin_cleaning();
    clean_alone();
  }
  wake();
}

void ClusterStore::refused(const std::string& found) {
  const auto head = found.empty() ? Result<Head>(Head{}) : decode_head(found);
  if (!head) return fail(head.error());
  const bool was_active = role_ == Role::kActive || role_ == Role::kCompleting;
  if (was_active && (found.empty() || head->same_writer(head_))) return fail(log_went_back());
  pending_.reset();
  read_is_old_ = true;
  become_standby();
  observe(found);
}

// --- The role ------------------------------------------------------------------------------------

void ClusterStore::begin_to_serve() {
  PAWL_ASSERT(role_ == Role::kCompleting);
  if (PAWL_MUTANT(takeover_with_a_stale_copy)) {
    if (copy_->next() <= head_.last) copy_->skip_to(head_.last + 1);
  } else if (const auto complete = copy_->complete(head_); !complete) {
    return fail(complete.error());
  }
  role_ = Role::kActive;  // If the last time has ended unseen by pump(), that is reported first.
  read_at_ = Nanos(0);
  wake();
}

void ClusterStore::become_standby() {
  if (role_ == Role::kActive) {  // What it wrote last may not be in the log.
    copy_.reset();
    unfollowed_.clear();
  }
  role_ = Role::kStandby;
  resigning_ = resigned_myself_ = false;
  cleaning_.reset();
  gather_until_ = Nanos(0);
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
  if (is_earlier(*decoded)) return fail(log_went_back());
  head_since_ = clock_();
  resigned_myself_ = false;
  const bool another = !head_bytes_ || !decoded->same_writer(head_) || may_serve_;
  head_bytes_ = head;
  head_ = *decoded;
  if (!another || (head.empty() && !may_serve_)) return;
  deposed_ =
      Active{.address = head_.address, .epoch = head_.epoch, .incarnation = head_.incarnation};
  wake();
}

// One history only adds; so this is another one, or an earlier state of it.
bool ClusterStore::is_earlier(const Head& head) const {
  if (!head_bytes_ || head_bytes_->empty()) return false;
  return head.incarnation != head_.incarnation || head.epoch < head_.epoch || head.n < head_.n ||
         head.last < head_.last || head.covered < head_.covered || head.sequence < head_.sequence;
}

bool ClusterStore::may_claim(Nanos now) const {
  if (role_ != Role::kStandby || !head_bytes_ || pending_ || leaves_) return false;
  if (head_bytes_->empty()) return true;
  if (head_.state == HeadState::kResigned && !resigned_myself_) return true;
  const Nanos wait = PAWL_MUTANT(takeover_too_soon) ? settings_.role_ttl / 3 : settings_.role_ttl;
  return now - head_since_ >= wait + jitter_;
}

void ClusterStore::claim() {
  Pending next = next_write();
  if (head_bytes_->empty()) next.head.incarnation = Incarnation{random_.next()};
  ++next.head.epoch;
  next.head.writer = {random_.next(), random_.next()};
  next.head.state = HeadState::kActive;
  next.head.address = settings_.address;
  role_ = Role::kClaiming;
  send(std::move(next));
}

// --- Reading -------------------------------------------------------------------------------------

void ClusterStore::read_on() {
  reading_ = Reading::kCopy;
  reading_from_ = copy_ ? copy_->next() : head_.first;
  read_is_old_ = false;
  log_.read({.from = reading_from_, .most = kEntriesAtOnce});
}

void ClusterStore::read(const SharedLog::ReadAnswer& answer) {
  PAWL_ASSERT(reading_ != Reading::kNothing);
  const Reading wanted = std::exchange(reading_, Reading::kNothing);
  const Nanos now = clock_();
  read_at_ = now + (answer.known ? settings_.poll : settings_.resend_pause);
  if (failure_) return;
  if (wanted == Reading::kOldEntries || role_ == Role::kActive) {
    if (wanted == Reading::kOldEntries && role_ == Role::kActive) read_back(answer);
    return;
  }
  if (!answer.known) return;
  if (const auto copied = copy_entries(answer); !copied) return fail(copied.error());
  if (role_ == Role::kStandby && !read_is_old_) observe(answer.head);
  if (role_ == Role::kCompleting && copy_is_complete()) begin_to_serve();
}

// Takes the entries of the answer into the copy. If there are more, the next read is due at once.
Result<void> ClusterStore::copy_entries(const SharedLog::ReadAnswer& answer) {
  if (answer.head.empty()) return {};
  const auto head = decode_head(answer.head);
  if (!head) return head.error();
  // From before the takeover; or another one writes by now, and the next write of this one learns
  // of it.
  if (role_ == Role::kCompleting && !head->same_writer(head_)) {
    if (read_is_old_) read_at_ = clock_();
    return {};
  }
  // Not begun, or what would come next is cleaned away already.
  if (!copy_ || copy_->next() < head->first) begin_copy(*head);
  if (reading_from_ > copy_->next()) {  // It was asked for a copy that is given up since.
    read_at_ = clock_();
    return {};
  }
  for (const SharedLog::NumberedEntry& entry : answer.entries) {
    if (entry.number < copy_->next()) continue;
    if (auto taken = copy_->take(entry.number, entry.bytes); !taken) return taken;
    unfollowed_.emplace_back(operations_of(entry.bytes));
  }
  if (!unfollowed_.empty()) wake();
  const bool progress = copy_->next() != reading_from_;
  if (copy_->next() > head->last || !progress) return copy_->complete(*head);
  read_at_ = clock_();
  return {};
}

void ClusterStore::begin_copy(const Head& head) {
  copy_.emplace(head, settings_.cleaning);
  unfollowed_.clear();
  follow_again_ = true;
}

// Whether the sink has taken all of it.
bool ClusterStore::pass_on(Sink& sink) {
  if (std::exchange(follow_again_, false)) sink.follow_again();
  for (const std::string& operations : std::exchange(unfollowed_, {})) {
    const auto followed = sink.followed(operations);
    if (followed) continue;
    fail(followed.error());
    return false;
  }
  return true;
}

bool ClusterStore::copy_is_complete() const {
  return copy_->next() > head_.last || PAWL_MUTANT(takeover_with_a_stale_copy);
}

// --- Cleaning ------------------------------------------------------------------------------------

void ClusterStore::begin_cleaning() {
  if (!cleaning_) {
    if (!copy_->index().wants_cleaning()) return;
    const CleaningPlan plan = copy_->index().plan();
    if (plan.first == copy_->index().first()) return;
    cleaning_ = Cleaning{.plan = plan, .entries = {}};
  }
  if (cleaning_->complete) return;
  reading_ = Reading::kOldEntries;
  reading_from_ = copy_->index().first();
  log_.read({.from = reading_from_, .most = cleaning_->plan.first - reading_from_});
}

void ClusterStore::read_back(const SharedLog::ReadAnswer& answer) {
  if (!cleaning_ || !answer.known || reading_from_ != copy_->index().first()) return;
  // A deposed one finds them deleted; its next write tells it.
  if (answer.entries.size() != cleaning_->plan.first - reading_from_) return;
  cleaning_->entries = answer.entries;
  cleaning_->complete = true;
  clean_alone();
  wake();
}

// Adds the entry of a batch; and cleaning with it, if that is prepared and fits.
void ClusterStore::carry(Pending& pending, std::string_view operations) {
  std::string carried;
  if (cleaning_ && cleaning_->complete) {
    auto live = carried_records(copy_->index(), cleaning_->entries, operations);
    if (!live) return fail(live.error());
    if (live->size() + operations.size() <= limits::kEtcdEntryMax + limits::kEtcdCarriedMax) {
      carried = std::move(*live);
      pending.head.first = pending.write.delete_before = cleaning_->plan.first;
    }
  }
  add_entry(pending, std::move(carried), std::string(operations));
}

// What would not fit beside a large batch has an entry of its own.
void ClusterStore::clean_alone() {
  if (!cleaning_ || !cleaning_->complete || pending_ || failure_ || resigning_ ||
      cleaning_->plan.carried_bytes <= limits::kEtcdCarriedMax)
    return;
  Pending next = next_write();
  carry(next, "");
  if (!failure_) send(std::move(next));
}

// --- Store ---------------------------------------------------------------------------------------

Result<Loaded> ClusterStore::load(Visitor& /*visitor*/) {
  PAWL_ASSERT(role_ == Role::kActive && may_serve_ && unfollowed_.empty());
  return Loaded{.incarnation = head_.incarnation,
                .high_water = head_.covered,
                .sequence = head_.sequence,
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
    if (role_ == Role::kActive || !unfollowed_.empty()) wake();
    return;  // It forgets what it had before it follows.
  }
  for (const BatchId batch : std::exchange(durable_, {})) sink.durable(batch);
  if (!may_serve_ && !pass_on(sink)) return sink.failed(BatchId{}, *failure_);
  // A takeover that is confirmed late may be over again: the next heartbeat tells.
  if (role_ == Role::kActive && clock_() < window_end_) may_serve_ = true;
}

Result<void> ClusterStore::begin_backup(const BackupOrder& order) {
  return Error{Code::kInvalid, "a store in " + std::string(kind()) +
                                   " is backed up without pawld: run pawld backup --to " +
                                   order.directory + " with its --etcd and --cluster, or --config"};
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
