// Random schedules of one fence: an upstream that delays, reorders, answers late or never; a gate
// that is killed at any moment. Checked are the two properties of tests/models/gate.pml:
//
//   never_back       no effect upstream with a lower token after one with a greater token, or after
//                    a read under a greater token was forwarded
//   rightful_served  the greatest token seen is never refused, only told to wait
//
// and that after all that is served: what waits is forwarded once the rest is settled. The naive
// variants of the model are planted in what surrounds the fence, and each must be caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "base/random.h"
#include "gate/fence.h"

namespace pawl::gate {
namespace {

using namespace std::chrono_literals;

enum class Variant {
  kRight,
  kForwardAtOnce,      // a greater token does not wait
  kMarkBeforeDrain,    // the mark is opened when the greater token arrives
  kMarkAfterForward,   // the mark is written while requests are already forwarded
  kCloseForgetsToken,  // a closed mark is no mark
  kForgetOpenMark,     // after a crash nothing is in flight
  kTimeoutIsDone,      // a forward that times out is over
};

class World {
 public:
  World(std::uint64_t seed, Variant variant) : random_(seed), variant_(variant) {
    settings_.waiting_max = 4;
    start();
  }

  // What went wrong; empty: nothing.
  std::string run(int steps) {
    for (int i = 0; i < steps && fault_.empty(); ++i) step();
    if (fault_.empty() && variant_ == Variant::kRight) check_that_a_waiter_is_served();
    return fault_;
  }

 private:
  enum class State { kRunning, kDone };  // kDone: it took effect, its answer is on its way
  struct Upstream {
    Token token;
    State state = State::kRunning;
    bool awaited = true;     // the gate would hear of an answer
    bool timed_out = false;  // but has given up waiting
  };
  struct Arrived {
    Token token;
    Kind kind;
  };

  void start() {
    Mark mark = disk_;
    if (variant_ == Variant::kForgetOpenMark) mark.open = false;
    fence_.emplace(settings_, mark);
    arrived_.clear();
    write_.reset();
  }

  void step() {
    now_ += Millis(random_.below(400));
    switch (random_.below(13)) {
      case 0:
      case 1:
      case 2:
        return arrive(Token{1 + random_.below(5)});
      case 3:
      case 4:
        return with_upstream([&](auto each) { take_effect(each); });
      case 5:
      case 6:
        return with_upstream([&](auto each) { answer(each); });
      case 7:
        return with_upstream([&](auto each) { give_up_waiting(each); });
      case 8:
      case 9:
      case 10:
        return finish_write();
      case 11:
        fence_->on_time(now_, actions_);
        return act();
      default:
        return rarely();
    }
  }

  void rarely() {
    switch (random_.below(5)) {
      case 0:
        return crash();
      case 4:
        return settle_what_is_over();
      case 1:
        return reset_upstream();
      case 2:
        // A forward that did not get there: it never takes effect, but nobody knows.
        return with_upstream([&](auto each) {
          if (!each->second.awaited) upstream_.erase(each);
        });
      default:
        if (!arrived_.empty()) {
          fence_->leave(arrived_.begin()->first);
          arrived_.erase(arrived_.begin());
        }
    }
  }

  void arrive(Token token) {
    const RequestId request{++last_request_};
    greatest_arrived_ = std::max(greatest_arrived_, token);
    arrived_[request] = {token, random_.below(4) == 0 ? Kind::kRead : Kind::kWrite};
    const Kind kind = arrived_[request].kind;
    const bool rises = token > fence_->max();
    fence_->arrive(request, token, kind, now_, actions_);
    if (variant_ == Variant::kMarkBeforeDrain && rises) disk_ = {token, true};
    if (variant_ == Variant::kForwardAtOnce && rises) {
      disk_ = {token, true};
      forward(request);
    }
    act();
  }

  void act() {
    // An action may lead to others.
    while (!actions_.empty()) {
      const Actions now = std::exchange(actions_, {});
      for (const Action& action : now) act(action);
    }
  }

  void act(const Action& action) {
    switch (action.type) {
      case Action::Type::kForward:
        return forward(action.request);
      case Action::Type::kRefuse:
        if (const auto found = arrived_.find(action.request); found != arrived_.end()) {
          if (found->second.token >= greatest_arrived_) fault_ = "rightful_served";
          arrived_.erase(found);
        }
        return;
      case Action::Type::kGiveUp:
      case Action::Type::kBusy:
        arrived_.erase(action.request);
        return;
      case Action::Type::kWriteMark:
        write_ = action.mark;
        if (variant_ == Variant::kCloseForgetsToken && !write_->open) write_->token = Token{};
        if (variant_ == Variant::kMarkAfterForward) fence_->mark_written(now_, actions_);
    }
  }

  void forward(RequestId request) {
    const auto found = arrived_.find(request);
    if (found == arrived_.end()) return;  // forwarded already, by a variant
    const auto [token, kind] = found->second;
    arrived_.erase(found);
    if (kind == Kind::kWrite) {
      upstream_[request] = {token};
      return;
    }
    // The holder builds on what it reads now.
    greatest_effect_ = std::max(greatest_effect_, token);
  }

  template <class Do>
  void with_upstream(Do action) {
    if (upstream_.empty()) return;
    action(std::next(upstream_.begin(), static_cast<long>(random_.below(upstream_.size()))));
  }
  using Iterator = std::map<RequestId, Upstream>::iterator;

  void take_effect(Iterator each) {
    if (each->second.state == State::kDone) return;
    if (each->second.token < greatest_effect_) fault_ = "never_back";
    greatest_effect_ = each->second.token;
    each->second.state = State::kDone;
    if (!each->second.awaited) upstream_.erase(each);
  }

  // After the effect, or a refusal without one. A late answer too.
  void answer(Iterator each) {
    if (!each->second.awaited) return;
    const RequestId request = each->first;
    upstream_.erase(each);
    fence_->answered(request, now_, actions_);
    act();
  }

  void give_up_waiting(Iterator each) {
    const RequestId request = each->first;
    if (!each->second.awaited) return;
    if (variant_ == Variant::kTimeoutIsDone) {
      each->second.awaited = false;
      fence_->answered(request, now_, actions_);
      return act();
    }
    fence_->timed_out(request);
    each->second.timed_out = true;
    if (random_.below(2) == 0) return;  // Its answer may still come.
    fence_->lost(request);
    orphan(each);
  }

  void orphan(Iterator each) {
    each->second.awaited = false;
    if (each->second.state == State::kDone) upstream_.erase(each);
  }

  void finish_write() {
    if (!write_) return;
    disk_ = *write_;
    write_.reset();
    if (variant_ == Variant::kMarkAfterForward) return;
    fence_->mark_written(now_, actions_);
    act();
  }

  void crash() {
    if (write_ && random_.below(2) == 0) disk_ = *write_;
    for (auto each = upstream_.begin(); each != upstream_.end();) orphan(each++);
    start();
  }

  // The operator restarts the upstream, and tells the gate what is over.
  void reset_upstream() {
    std::vector<RequestId> broken;
    for (const auto& [request, each] : upstream_) {
      if (each.awaited) broken.push_back(request);
    }
    upstream_.clear();
    for (const RequestId request : broken) fence_->lost(request);
    fence_->settle(now_, actions_);
    act();
  }

  // The operator waits until nothing runs that the gate does not know of. What it knows of goes on.
  void settle_what_is_over() {
    std::erase_if(upstream_,
                  [](const auto& each) { return !each.second.awaited || each.second.timed_out; });
    fence_->settle(now_, actions_);
    act();
  }

  void check_that_a_waiter_is_served() {
    finish_write();
    reset_upstream();
    const RequestId request{++last_request_};
    arrived_[request] = {greatest_arrived_ = Token{6}, Kind::kWrite};
    fence_->arrive(request, Token{6}, Kind::kWrite, now_, actions_);
    act();
    for (int i = 0; i < 3; ++i) finish_write();
    if (!upstream_.contains(request)) fault_ = "the greatest token is not served";
  }

  SeededRandom random_;
  const Variant variant_;
  FenceSettings settings_;
  std::optional<Fence> fence_;
  Actions actions_;
  Instant now_{1h};
  std::uint64_t last_request_ = 0;
  std::map<RequestId, Arrived> arrived_;  // not forwarded and not refused yet
  std::optional<Mark> write_;             // being written
  Mark disk_;
  std::map<RequestId, Upstream> upstream_;
  Token greatest_effect_{}, greatest_arrived_{};
  std::string fault_;
};

constexpr int kSteps = 60;

TEST(SchedulesTest, NoScheduleBreaksTheRules) {
  const char* asked = std::getenv("PAWL_GATE_SCHEDULES");
  const std::uint64_t schedules = asked == nullptr ? 100'000 : std::strtoull(asked, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= schedules; ++seed)
    ASSERT_EQ(World(seed, Variant::kRight).run(kSteps), "") << "seed " << seed;
}

class NaiveGateTest : public ::testing::TestWithParam<Variant> {};

TEST_P(NaiveGateTest, IsCaught) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    const std::string fault = World(seed, GetParam()).run(kSteps);
    if (fault == "never_back" || fault == "rightful_served") return;
  }
  FAIL() << "20,000 schedules did not find it";
}

std::string name_of(const ::testing::TestParamInfo<Variant>& info) {
  constexpr const char* kNames[] = {
      "Right",          "ForwardAtOnce", "MarkBeforeDrain", "MarkAfterForward", "CloseForgetsToken",
      "ForgetOpenMark", "TimeoutIsDone"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Variants, NaiveGateTest,
                         ::testing::Values(Variant::kForwardAtOnce, Variant::kMarkBeforeDrain,
                                           Variant::kMarkAfterForward, Variant::kCloseForgetsToken,
                                           Variant::kForgetOpenMark, Variant::kTimeoutIsDone),
                         name_of);

}  // namespace
}  // namespace pawl::gate
