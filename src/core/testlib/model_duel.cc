#include "core/testlib/model_duel.h"

#include <algorithm>
#include <array>

#include "core/testlib/describe.h"

namespace pawl::core {
namespace {

const std::array<std::string, 4> kLocks{"a", "b", "c", "d"};

template <class T, std::size_t kCount>
T pick(const std::array<T, kCount>& choices, std::uint32_t number) {
  return choices[number % kCount];
}

Options small_limits() {
  Options options;
  options.in_all.waiters = 10;
  options.history_epochs = 24;
  options.request_memory = Millis(700);
  return options;
}

std::string sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

}  // namespace

Duel::Duel(Grain grain)
    : options_(small_limits()),
      grain_(grain),
      core_(std::make_unique<Core>(options_)),
      model_(options_) {
  now_ = Now{Tick(Millis(5000)), UnixMs{1'700'000'000'000}};
  if (!core_->loaded(Token{}, now_)) wrong_.push_back("an empty store does not load");
  follower_ = std::make_unique<Core>(options_);
  before_ = snapshot(*core_, now_);
}

bool Duel::step(const Command& command) {
  run(command);
  compare();
  core_->output().clear();
  model_.replies.clear();
  model_.events.clear();
  model_.rests_on.clear();
  return wrong_.empty();
}

std::string Duel::report() const {
  constexpr std::size_t kShown = 40;
  std::string text = "the last steps:\n";
  const std::size_t first = trace_.size() > kShown ? trace_.size() - kShown : 0;
  for (std::size_t i = first; i < trace_.size(); ++i) text += "  " + trace_[i] + "\n";
  text += "what is wrong:\n";
  for (const std::string& line : wrong_) text += line + "\n";
  return text;
}

// --- Commands ------------------------------------------------------------------------------------

void Duel::run(const Command& command) {
  switch (command.op) {
    case Op::kAcquire:
      return acquire(make_spec(command));
    case Op::kRetry:
      return retry(command);
    case Op::kRenew: {
      const Renew input{next_waiter(), pick_lease(command.a)};
      note("renew " + describe(input.lease));
      core_->apply(input, now_);
      return model_.renew(input.waiter, input.lease, now_, take_choices());
    }
    case Op::kRelease: {
      const Release input{next_waiter(), pick_lease(command.a)};
      note("release " + describe(input.lease));
      core_->apply(input, now_);
      return model_.release(input.waiter, input.lease, now_, take_choices());
    }
    case Op::kCancel: {
      const auto& queue = model_.queue();
      const WaiterId waiter =
          queue.empty() ? WaiterId{9999999} : queue[command.a % queue.size()].waiter;
      note("hang-up of w" + std::to_string(waiter.value));
      pending_.hung_up(waiter);
      core_->apply(Cancel{waiter}, now_);
      return model_.cancel(waiter, now_, take_choices());
    }
    case Op::kCancelRequest: {
      if (asked_.empty()) return;
      const std::string request =
          asked_[asked_.size() - 1 - command.a % std::min<std::size_t>(asked_.size(), 6)].request;
      const CancelRequest input{next_waiter(), request};
      note("cancel " + request);
      core_->apply(input, now_);
      return model_.cancel_request(input.waiter, request, now_, take_choices());
    }
    case Op::kBreak:
      return break_one(command);
    case Op::kRaise: {
      const std::uint64_t last = model_.totals().last_token.value;
      const std::array<std::uint64_t, 5> to{last, last + 1, last + 1000,
                                            last + limits::kRaiseMax + 1, last / 2};
      const Raise input{next_waiter(), Token{pick(to, command.a)}, "because"};
      note("raise to " + std::to_string(input.token.value));
      core_->apply(input, now_);
      take_choices();
      return model_.raise(input.waiter, input.token);
    }
    case Op::kPass:
      return pass(command.a);
    case Op::kTick:
      pass(command.a);
      core_->tick(now_);
      return model_.tick(now_, take_choices());
    case Op::kCommit:
      return commit();
    case Op::kDurable:
      return arrive();
    case Op::kRestart:
      return restart(command.a);
  }
}

WaiterId Duel::next_waiter(bool expects_an_answer) {
  const WaiterId waiter{++waiters_};
  if (expects_an_answer) pending_.asked(waiter);
  return waiter;
}

naive::Choices Duel::take_choices() {
  model_.open_batch(core_->last_batch());
  return naive::choices_of(core_->output());
}

naive::Spec Duel::make_spec(const Command& command) {
  naive::Spec spec;
  const std::uint32_t first = command.a % 4;
  spec.locks = {kLocks[first]};
  const std::uint32_t kind = (command.a >> 2) % 8;
  if (kind < 2) {
    for (std::uint32_t more = 0; more <= kind; ++more)
      spec.locks.push_back(kLocks[(first + 1 + more + ((command.a >> 5) % 2)) % 4]);
  } else if (kind == 5) {
    spec.mode = Mode::kShared;
  } else if (kind > 5) {
    spec.mode = Mode::kLimit;
    spec.limit = 1 + (command.a >> 6) % 4;
  }
  spec.ttl = pick(std::array{Millis(100), Millis(150), Millis(300), Millis(1000)}, command.b);
  spec.wait =
      pick(std::array{Millis(0), Millis(60), Millis(200), Millis(200), Millis(900), Millis(3000)},
           command.b >> 2);
  spec.delay =
      pick(std::array{Millis(0), Millis(0), Millis(0), Millis(90), Millis(250)}, command.b >> 5);
  spec.max_hold =
      pick(std::array{Millis(0), Millis(0), spec.ttl, spec.ttl * 2 + Millis(30)}, command.b >> 8);
  if (command.c % 4 != 0) {
    spec.request = "request-" + std::to_string(10'000'000'000'000 + ++requests_);
    spec.async = command.c % 4 == 1;
  }
  if ((command.c >> 2) % 8 == 0)
    spec.meta = {{"job", "nightly"}, {"try", std::to_string(command.c % 100)}};
  return spec;
}

void Duel::acquire(const naive::Spec& asked) {
  naive::Spec spec = asked;
  const WaiterId waiter = next_waiter();
  const LeaseId candidate{1, ++candidates_};
  if (spec.owner.empty()) spec.owner = "owner" + std::to_string(waiter.value);
  if (!spec.request.empty()) asked_.push_back(spec);
  std::string names;
  for (const std::string& lock : spec.locks) names += " " + lock;
  note("w" + std::to_string(waiter.value) + " acquires" + names + " mode " +
       std::to_string(static_cast<int>(spec.mode)) + " limit " + std::to_string(spec.limit) +
       " ttl " + std::to_string(spec.ttl.count()) + " wait " + std::to_string(spec.wait.count()) +
       " delay " + std::to_string(spec.delay.count()) + " max_hold " +
       std::to_string(spec.max_hold.count()) + " " + spec.request + (spec.async ? " async" : ""));
  core_->apply(Acquire{waiter, spec.view(), candidate}, now_);
  model_.acquire(waiter, spec, candidate, now_, take_choices());
}

// The same request id again; now and then for something else, which is a conflict.
void Duel::retry(const Command& command) {
  if (asked_.empty()) return;
  naive::Spec spec =
      asked_[asked_.size() - 1 - command.a % std::min<std::size_t>(asked_.size(), 6)];
  spec.wait = pick(std::array{Millis(0), Millis(100), Millis(500), Millis(500)}, command.b);
  spec.async = (command.b >> 2) % 2 == 0;
  switch ((command.b >> 3) % 10) {
    case 0:
      spec.ttl += Millis(1);
      break;
    case 1:
      spec.locks[0] = spec.names("x") ? "y" : "x";
      break;
    case 2:
      if (spec.mode == Mode::kShared) spec.mode = Mode::kExclusive;
      if (spec.mode == Mode::kLimit) spec.limit = spec.limit % 4 + 1;
      break;
    case 3:  // None of these makes it another request.
      spec.owner = "someone else";
      spec.delay = Millis(10);
      spec.meta.clear();
      std::reverse(spec.locks.begin(), spec.locks.end());
      break;
    default:
      break;
  }
  acquire(spec);
  asked_.pop_back();  // What was asked first stays what a later retry repeats.
}

LeaseId Duel::pick_lease(std::uint32_t choice) const {
  const auto& leases = model_.leases();
  if (choice % 8 == 0 || leases.empty())
    return LeaseId{1, candidates_ - std::min<std::uint64_t>(candidates_, choice % 32)};
  return leases[(choice >> 3) % leases.size()].id;
}

void Duel::break_one(const Command& command) {
  const auto& leases = model_.leases();
  Token token{command.a};
  std::string lock = kLocks[command.b % 4];
  if (!leases.empty() && command.a % 8 != 0) {
    const naive::Lease& lease = leases[(command.a >> 3) % leases.size()];
    token = lease.token;
    if (command.b % 8 != 0) lock = lease.spec.locks[command.b % lease.spec.locks.size()];
  }
  const Break input{next_waiter(), lock, token, command.c % 2 == 0, "stuck"};
  note("break " + lock + " token " + std::to_string(token.value) + (input.now ? " now" : ""));
  core_->apply(input, now_);
  model_.break_lease(input.waiter, lock, token, input.now, now_, take_choices());
}

void Duel::pass(std::uint32_t amount) {
  const Millis by = pick(std::array{Millis(0), Millis(1), Millis(7), Millis(30), Millis(50),
                                    Millis(100), Millis(149), Millis(400)},
                         amount);
  now_.tick += by;
  now_.wall.value += static_cast<std::uint64_t>(by.count());
  if (grain_ == Grain::kNanosecond) now_.tick += Nanos((amount >> 3) % 1'500'000);
  note("time is " + std::to_string(now_.tick.time_since_epoch().count()) + " ns");
}

void Duel::commit() {
  const bool expected = model_.has_changes();
  Batch batch;
  const BatchId id = core_->take_batch(batch);
  note("commit of batch " + std::to_string(id.value));
  if ((id.value != 0) != expected)
    wrong_.push_back(expected ? "changes without a batch" : "a batch without changes");
  if (id.value == 0) return;
  high_water_ = std::max(high_water_, batch.covered());
  if (high_water_ < model_.totals().last_token.value)
    wrong_.push_back("the batch does not cover its tokens");
  model_.batch_taken(id);
  flying_.push_back(Flying{id, std::move(batch)});
}

void Duel::arrive() {
  if (flying_.empty()) return;
  const Flying flying = std::move(flying_.front());
  flying_.pop_front();
  std::string_view bytes = flying.batch.bytes();
  while (!bytes.empty()) {
    const auto operation = take_operation(bytes);
    if (!operation) return wrong_.push_back("a batch cannot be read back");
    const std::string key(operation->key);
    if (operation->put) {
      disk_[key] = operation->value;
      const auto loaded = follower_->load(key, operation->value);
      if (!loaded) wrong_.push_back("follow: " + loaded.error().detail);
    } else {
      disk_.erase(key);
      follower_->unload(key);
    }
  }
  note("batch " + std::to_string(flying.id.value) + " is durable");
  core_->durable(flying.id, now_);
  model_.durable(flying.id, now_);
}

// kill -9: of the batches on their way, the first few reached the disk. Half of the time a core goes
// on that has followed all along, as a standby does.
void Duel::restart(std::uint32_t choice) {
  for (std::size_t more = flying_.empty() ? 0 : choice % (flying_.size() + 1); more > 0; --more)
    arrive();
  flying_.clear();
  if ((choice >> 4) % 2 == 0)
    high_water_ += (choice >> 5) % limits::kTokenBlock;  // An unclean stop skips a block.
  note("restart with " + std::to_string(disk_.size()) + " records, high water " +
       std::to_string(high_water_));

  auto next = load_all(choice);
  if ((choice >> 7) % 2 == 0) std::swap(next, follower_);
  const auto loaded = next->loaded(Token{high_water_}, now_);
  if (!loaded) wrong_.push_back("loaded: " + loaded.error().detail);
  core_ = std::move(next);
  follower_ = load_all(choice);
  model_.restart(Token{high_water_}, now_);
  pending_.restarted();
  before_ = snapshot(*core_, now_);
}

std::unique_ptr<Core> Duel::load_all(std::uint32_t choice) {
  auto next = std::make_unique<Core>(options_);
  std::vector<std::pair<std::string, std::string>> records(disk_.begin(), disk_.end());
  if (!records.empty()) {  // In no promised order.
    std::rotate(records.begin(),
                records.begin() + static_cast<std::ptrdiff_t>(choice % records.size()),
                records.end());
    if ((choice >> 6) % 2 == 0) std::reverse(records.begin(), records.end());
  }
  for (const auto& [key, value] : records) {
    const auto loaded = next->load(key, value);
    if (!loaded) wrong_.push_back("load: " + loaded.error().detail);
  }
  return next;
}

// --- Comparing -----------------------------------------------------------------------------------

void Duel::compare() {
  compare_outputs();
  compare_reads();
  Snapshot after = snapshot(*core_, now_);
  for (std::string& line : check_step(before_, after, core_->output()))
    wrong_.push_back("invariant: " + line);
  const std::vector<Reply>& replies = core_->output().replies;
  if (replies.size() == 1 && std::holds_alternative<Refused>(replies[0].outcome)) {
    for (std::string& line : check_unchanged(before_, after))
      wrong_.push_back("invariant: " + line);
  }
  for (std::string& line : pending_.settle(replies, after)) wrong_.push_back("invariant: " + line);
  before_ = std::move(after);
}

void Duel::compare_outputs() {
  const Output& output = core_->output();
  std::vector<std::string> replies, events;
  for (const Reply& reply : output.replies) {
    replies.push_back(describe(reply));
    note("    -> " + replies.back());
    const auto rests = model_.rests_on.find(reply.waiter);
    if (rests != model_.rests_on.end() && reply.after < rests->second) {
      wrong_.push_back("answered before it is durable: " + replies.back());
    }
    if (reply.after > core_->last_batch())
      wrong_.push_back("waits for a batch that may never come: " + replies.back());
  }
  for (const Event& event : output.events) {
    events.push_back(describe(output, event));
    if (event.after.value == 0) wrong_.push_back("an event of no batch: " + events.back());
  }
  expect_same("replies", sorted(replies), sorted(model_.replies));
  expect_same("events", sorted(events), sorted(model_.events));
  for (const std::string& complaint : model_.complaints)
    wrong_.push_back("not allowed: " + complaint);
}

void Duel::compare_reads() {
  std::vector<std::string> listed;
  std::uint64_t cursor = 0;
  do {
    const LocksPage page = core_->list("", cursor, 2, now_);
    for (const LockView& view : page.locks) listed.push_back(view.lock);
    cursor = page.cursor;
  } while (cursor != 0);
  expect_same("list", sorted(listed), sorted(model_.locks()));
  for (const std::string& lock : kLocks) {
    const LockView core_view = core_->inspect(lock, now_, {.count = SIZE_MAX, .after = {}});
    expect_same("inspect", describe(core_view), describe(model_.inspect(lock, now_)));
    std::vector<std::string> core_history, model_history;
    for (const EpochView& epoch : core_->history(lock, 1000))
      core_history.push_back(describe(epoch));
    for (const EpochView& epoch : model_.history(lock)) model_history.push_back(describe(epoch));
    if (core_history != model_history)
      expect_same("history of " + lock, sorted(core_history), sorted(model_history) + "(in order)");
  }
  expect_same("totals", describe(core_->totals()), describe(model_.totals()));
  const Tick due = model_.next_due();
  if (due != kNever && core_->next_deadline() > std::max(due, now_.tick) + Millis(1))
    wrong_.push_back("the next deadline is too late");
}

void Duel::expect_same(const std::string& what, const std::string& core, const std::string& model) {
  if (core != model)
    wrong_.push_back(what + ": the core says\n" + core + "\nthe model says\n" + model);
}

}  // namespace pawl::core
