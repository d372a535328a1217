#include "sim/shared_log_model.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pawl::sim {
namespace {

constexpr Millis kAttempt{150};  // Without an answer for so long the outcome is unknown.

}  // namespace

// --- The model -----------------------------------------------------------------------------------

SharedLogModel::WriteAnswer SharedLogModel::write(const Write& write) {
  using Outcome = WriteAnswer::Outcome;
  if (write.expected && *write.expected != head_) return {Outcome::kRefused, head_};
  head_ = write.head;
  // Two that write without comparing may leave a gap, or write one entry twice.
  if (write.entry != 0) entries_[write.entry] = write.bytes;
  entries_.erase(entries_.begin(), entries_.lower_bound(write.delete_before));
  return {Outcome::kApplied, ""};
}

SharedLogModel::ReadAnswer SharedLogModel::read(const Read& read) const {
  ReadAnswer answer{.known = true, .head = head_, .entries = {}};
  const auto end = entries_.lower_bound(read.from + read.most);
  for (auto entry = entries_.lower_bound(read.from); entry != end; ++entry)
    answer.entries.push_back({entry->first, entry->second});
  return answer;
}

// Mostly a moment; at times longer than an attempt lasts, and than a role does.
Nanos SharedLogModel::delay() {
  const std::uint64_t luck = lossy_ ? world_.random().below(100) : 99;
  const Millis most = luck == 0 ? Millis(2500) : luck < 4 ? Millis(250) : Millis(2);
  return world_.between(std::chrono::microseconds(100), most);
}

// --- The way there and back ----------------------------------------------------------------------

SimulatedLog::SimulatedLog(World& world, SharedLogModel& model, std::function<void()> answered)
    : world_(world), model_(model), state_(std::make_shared<State>()) {
  state_->answered = std::move(answered);
}

SimulatedLog::~SimulatedLog() {
  state_->listener = nullptr;
}

void SimulatedLog::pause(bool paused) {
  state_->paused = paused;
  if (paused) return;
  for (const auto& answer : std::exchange(state_->waiting, {})) deliver(*state_, answer);
}

void SimulatedLog::deliver(State& state, const std::function<void()>& answer) {
  if (state.listener == nullptr) return;
  if (state.paused) return state.waiting.push_back(answer);
  answer();
  state.answered();
}

void SimulatedLog::write(const Write& write) {
  const std::shared_ptr<State> state = state_;
  const std::uint64_t attempt = ++state->writes;
  const auto answer = [state, attempt](const WriteAnswer& outcome) {
    deliver(*state, [state = state.get(), attempt, outcome] {
      if (state->writes != attempt) return;  // It was given up.
      ++state->writes;
      state->listener->written(outcome);
    });
  };
  world_.after(kAttempt, [answer] { answer({}); });
  if (state->cut || model_.loses()) return;
  world_.after(model_.delay(), [this_world = &world_, model = &model_, state, write, answer] {
    const WriteAnswer outcome = model->write(write);
    if (model->loses()) return;
    this_world->after(model->delay(), [state, answer, outcome] {
      if (!state->cut) answer(outcome);
    });
  });
}

void SimulatedLog::read(const Read& read) {
  const std::shared_ptr<State> state = state_;
  const std::uint64_t attempt = ++state->reads;
  const auto answer = [state, attempt](const ReadAnswer& found) {
    deliver(*state, [state = state.get(), attempt, found] {
      if (state->reads != attempt) return;
      ++state->reads;
      state->listener->read(found);
    });
  };
  world_.after(kAttempt, [answer] { answer({}); });
  if (state->cut || model_.loses()) return;
  world_.after(model_.delay(), [this_world = &world_, model = &model_, state, read, answer] {
    const ReadAnswer found = model->read(read);
    if (model->loses()) return;
    this_world->after(model->delay(), [state, answer, found] {
      if (!state->cut) answer(found);
    });
  });
}

}  // namespace pawl::sim
