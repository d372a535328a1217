// What the tests of the core's rules share: a core whose clock is moved by hand and whose store
// commits when the test asks for it, so that a test reads in order. Every step is also judged by
// the invariants.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/testlib/describe.h"
#include "core/testlib/invariants.h"
#include "core/testlib/naive_model.h"

namespace pawl::core {

using namespace std::chrono_literals;
using naive::Spec;

inline Spec exclusive(std::vector<std::string> locks, Millis ttl = 10s) {
  Spec spec;
  spec.locks = std::move(locks);
  spec.ttl = ttl;
  spec.owner = "somebody";
  return spec;
}
inline Spec shared(std::string lock, Millis ttl = 10s) {
  Spec spec = exclusive({std::move(lock)}, ttl);
  spec.mode = Mode::kShared;
  return spec;
}
inline Spec limit(std::uint32_t n, std::string lock, Millis ttl = 10s) {
  Spec spec = exclusive({std::move(lock)}, ttl);
  spec.mode = Mode::kLimit;
  spec.limit = n;
  return spec;
}

inline const std::string kRequest = "request-0123456789abcdef";

// A caller is a WaiterId; answer() is the last reply to it.
class CoreTest : public testing::Test {
 protected:
  CoreTest() { restart(); }

  // --- Asking ------------------------------------------------------------------------------------
  WaiterId asks(Spec spec) {
    const WaiterId waiter{++waiters_};
    pending_.asked(waiter);
    if (spec.owner == "somebody") spec.owner = "owner " + std::to_string(waiter.value);
    step([&] { core_->apply(Acquire{waiter, spec.view(), LeaseId{7, waiter.value}}, now_); });
    return waiter;
  }
  WaiterId waits(Spec spec, Millis wait = 60s) {
    spec.wait = wait;
    return asks(std::move(spec));
  }
  WaiterId asks_again(Spec spec, const std::string& request = kRequest) {
    spec.request = request;
    return asks(std::move(spec));
  }
  // Asks for what is free, and waits until that is durable.
  Granted takes(const Spec& spec) {
    const WaiterId waiter = asks(spec);
    commit();
    return grant_of(waiter);
  }
  Outcome renews(LeaseId lease) {
    return outcome_of([&](WaiterId waiter) { core_->apply(Renew{waiter, lease}, now_); });
  }
  bool releases(LeaseId lease) {
    return std::get<Released>(outcome_of([&](WaiterId waiter) {
             core_->apply(Release{waiter, lease}, now_);
           }))
        .was_live;
  }
  bool breaks(const std::string& lock, Token token, bool at_once = false) {
    const auto input = [&](WaiterId waiter) {
      core_->apply(Break{waiter, lock, token, at_once, "stuck"}, now_);
    };
    return std::get<BreakDone>(outcome_of(input)).was_live;
  }
  std::string asks_to_let_go(const std::string& lock, AccountId account = 0) {
    const auto input = [&](WaiterId waiter) {
      core_->apply(Ask{waiter, lock, "bob", "deploy", account}, now_);
    };
    return describe(outcome_of(input));
  }
  bool cancels(const std::string& request) {
    const auto input = [&](WaiterId waiter) { core_->apply(CancelRequest{waiter, request}, now_); };
    return std::get<CancelDone>(outcome_of(input)).was_waiting;
  }
  Outcome raises(std::uint64_t token) {
    return outcome_of([&](WaiterId waiter) {
      core_->apply(Raise{waiter, Token{token}, "because"}, now_);
    });
  }
  void hangs_up(WaiterId waiter) {
    pending_.hung_up(waiter);
    step([&] { core_->apply(Cancel{waiter}, now_); });
  }

  // --- Time and durability -----------------------------------------------------------------------
  void pass(Nanos by) { now_.tick += by; }  // Time goes by, and the turn has not come to its tick.
  void tick() {
    step([&] { core_->tick(now_); });
  }
  void after(Nanos by) {
    pass(by);
    tick();
  }
  BatchId submit() {
    Batch batch;
    const BatchId id = core_->take_batch(batch);
    if (id.value != 0) flying_.emplace_back(id, batch);
    high_water_ = std::max(high_water_, batch.covered());
    return id;
  }
  void durable() {
    while (!flying_.empty()) {
      const auto [id, batch] = flying_.front();
      flying_.pop_front();
      store(batch);
      step([&, id = id] { core_->durable(id, now_); });
    }
  }
  void commit() {
    submit();
    durable();
  }
  // kill -9, and a new core from what was durable.
  void restart() {
    core_ = std::make_unique<Core>(options_);
    flying_.clear();
    answers_.clear();
    pending_.restarted();
    for (const auto& [key, value] : disk_) EXPECT_TRUE(core_->load(key, value));
    EXPECT_TRUE(core_->loaded(Token{high_water_}, now_));
    before_ = snapshot(*core_, now_);
  }

  // --- What was said -----------------------------------------------------------------------------
  bool is_answered(WaiterId waiter) const { return answers_.contains(waiter); }
  Outcome answer(WaiterId waiter) const {
    EXPECT_TRUE(is_answered(waiter)) << "w" << waiter.value << " received no reply";
    return is_answered(waiter) ? answers_.at(waiter) : Outcome{};
  }
  std::string said(WaiterId waiter) const {
    return is_answered(waiter) ? describe(answers_.at(waiter)) : "nothing";
  }
  bool is_granted(WaiterId waiter) const {
    return is_answered(waiter) && std::holds_alternative<Granted>(answers_.at(waiter));
  }
  Granted grant_of(WaiterId waiter) const {
    EXPECT_TRUE(is_granted(waiter)) << said(waiter);
    return is_granted(waiter) ? std::get<Granted>(answers_.at(waiter)) : Granted{};
  }
  LockView inspect(const std::string& lock) const { return core_->inspect(lock, now_); }
  LockState state(const std::string& lock) const { return inspect(lock).state; }
  std::string how_it_ended(const std::string& lock) const {
    const auto history = core_->history(lock, 1);
    return history.empty() ? "never" : std::string(to_text(history[0].how));
  }

  template <class Input>
  Outcome outcome_of(Input input) {
    const WaiterId waiter{++waiters_};
    pending_.asked(waiter);
    step([&] { input(waiter); });
    return answer(waiter);
  }

  template <class Action>
  void step(Action action) {
    core_->output().clear();
    events_.clear();
    action();
    replies_ = core_->output().replies;
    for (const Reply& reply : replies_) answers_[reply.waiter] = reply.outcome;
    for (const Event& event : core_->output().events) {
      events_.push_back(describe(core_->output(), event));
      const std::string reason(core_->output().reason(event));
      if (!reason.empty()) events_.back() += " because " + reason;
    }
    if (!judged_) return;
    Snapshot after = snapshot(*core_, now_);
    for (const std::string& broken : check_step(before_, after, core_->output()))
      ADD_FAILURE() << broken;
    for (const std::string& broken : pending_.settle(replies_, after)) ADD_FAILURE() << broken;
    before_ = std::move(after);
  }

  void store(const Batch& batch) {
    std::string_view bytes = batch.bytes();
    while (!bytes.empty()) {
      const auto operation = take_operation(bytes);
      ASSERT_TRUE(operation);
      if (operation->put) {
        disk_[std::string(operation->key)] = operation->value;
      } else {
        disk_.erase(std::string(operation->key));
      }
    }
  }

  Options options_;
  std::unique_ptr<Core> core_;
  Now now_{Tick(1h), UnixMs{1'700'000'000'000}};
  // Off where the state is so large that looking at all of it each step takes too long.
  bool judged_ = true;
  std::vector<Reply> replies_;       // of the last step
  std::vector<std::string> events_;  // of the last step
  std::map<WaiterId, Outcome> answers_;
  std::uint64_t waiters_ = 0;
  std::uint64_t high_water_ = 0;
  std::deque<std::pair<BatchId, Batch>> flying_;
  std::map<std::string, std::string> disk_;
  Snapshot before_;
  PendingReplies pending_;
};

}  // namespace pawl::core
