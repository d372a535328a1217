#include "drill/scenario.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "base/version.h"
#include "client/boot_clock.h"
#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kSetUp{30'000};   // to start a process, to reach a database
constexpr milliseconds kAnswer{30'000};  // of a write
constexpr milliseconds kTick{100};       // how often config.on_wait is called

std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

std::string to_text(const std::vector<client::Address>& addresses) {
  std::string list;
  for (const client::Address& each : addresses)
    list += (list.empty() ? "" : ",") + client::to_text(each);
  return list;
}

Scenario::Scenario(std::string_view drill, DrillConfig config)
    : config_(std::move(config)), began_(client::boot_now()) {
  record_.drill = drill;
  record_.lock = config_.lock;
  record_.guard = config_.target.kind;
  const guard::Kind* kind = guard::find_kind(record_.guard);
  record_.guard_title = kind == nullptr ? record_.guard : std::string(kind->title);
  record_.resource = config_.target.resource;
  record_.mode = config_.mode;
  record_.require_token = config_.require_token;
  record_.guard_options = config_.guard_options;
  record_.scratch = config_.target.scratch;
  record_.statement = config_.target.statement;
  record_.tables = config_.tables;
  record_.pawld = to_text(config_.pawld);
  record_.version = kVersion;
  record_.began = wall_time();
  record_.ttl = config_.ttl;
}

Scenario::~Scenario() = default;

Moment Scenario::now() const {
  return moment(client::boot_now());
}

Moment Scenario::moment(client::Instant at) const {
  return at - began_;
}

// --- pawld ---------------------------------------------------------------------------------------

void Scenario::use_throwaway_pawld() {
  PAWL_ASSERT(workers_.empty() && throwaway_ == nullptr);
  throwaway_ = need(ThrowawayPawld::open(need(find_pawld())));
  config_.pawld = {throwaway_->address()};
  config_.auth = {};
  config_.tls = {};
  record_.pawld = "throw-away";
  log("pawld", "a throw-away pawld is running");
}

void Scenario::kill_pawld() {
  PAWL_ASSERT(throwaway_ != nullptr);
  throwaway_->kill();
  add_fault(FaultKind::kKilled, "pawld");
  log("pawld", "is killed (kill -9)");
}

void Scenario::start_pawld(std::chrono::seconds clock_offset) {
  PAWL_ASSERT(throwaway_ != nullptr);
  need(throwaway_->start(clock_offset));
  end_fault(FaultKind::kKilled, "pawld");
  const auto step = std::chrono::duration_cast<std::chrono::hours>(
                        clock_offset - std::exchange(clock_offset_, clock_offset))
                        .count();
  if (step == 0) {
    add_fault(FaultKind::kRestarted, "pawld").until = now();
    return log("pawld", "is started again");
  }
  const std::string note =
      fmt::format("its clocks moved {} h {}", std::abs(step), step > 0 ? "forward" : "back");
  add_fault(FaultKind::kClockStepped, "pawld", note).until = now();
  log("pawld", "is started again; " + note);
}

void Scenario::back_up_pawld() {
  PAWL_ASSERT(throwaway_ != nullptr);
  need(throwaway_->back_up());
  log("pawld", "is backed up");
}

void Scenario::restore_pawld() {
  PAWL_ASSERT(throwaway_ != nullptr);
  need(throwaway_->restore());
  add_fault(FaultKind::kRestored, "pawld").until = now();
  log("pawld", "has lost its data and is restored from the backup");
}

// --- workers -------------------------------------------------------------------------------------

WorkerProcess& Scenario::start_worker(const std::string& name, Network network) {
  if (observer_ == nullptr) start_observer();
  auto state = std::make_unique<WorkerState>();
  if (network == Network::kProxy) state->proxy = need(TcpProxy::open(config_.pawld));
  state->process = need(start_process(*state, name));
  workers_.push_back(std::move(state));
  await_ready(*workers_.back(), name);
  return *workers_.back()->process;
}

void Scenario::start_observer() {
  observer_ = need(LockObserver::open(config_.pawld, config_.auth, config_.lock));
  wait_until("pawld to send events of the lock", kSetUp,
             [&] { return observer_->subscribed() || !observer_->refusal().empty(); });
  if (!observer_->subscribed()) throw DrillAborted{{Code::kUnavailable, observer_->refusal()}};
}

Result<std::unique_ptr<WorkerProcess>> Scenario::start_process(const WorkerState& state,
                                                               const std::string& name) const {
  return WorkerProcess::start(name, config_, state.proxy == nullptr ? "" : state.proxy->address());
}

void Scenario::await_ready(WorkerState& state, const std::string& name) {
  state.ready = false;
  wait_until(name + " to be ready", kSetUp, [&] { return state.ready || state.error; });
  if (state.error)
    throw DrillAborted{{state.error->code, fmt::format("{}: {}", name, state.error->detail)}};
}

Scenario::WorkerState& Scenario::state_of(const WorkerProcess& worker) {
  return const_cast<WorkerState&>(std::as_const(*this).state_of(worker));
}

const Scenario::WorkerState& Scenario::state_of(const WorkerProcess& worker) const {
  const auto found = std::find_if(workers_.begin(), workers_.end(), [&](const auto& state) {
    return state->process.get() == &worker;
  });
  PAWL_ASSERT(found != workers_.end());
  return **found;
}

std::uint64_t Scenario::token(const WorkerProcess& worker) const {
  return state_of(worker).token;
}

std::uint64_t Scenario::acquire(WorkerProcess& worker) {
  request_lock(worker);
  return await_grant(worker);
}

void Scenario::request_lock(WorkerProcess& worker) {
  WorkerState& state = state_of(worker);
  state.waiting = true;
  state.error.reset();
  for (const Ownership& each : record_.ownerships)
    state.token_before = std::max(state.token_before, each.token);
  worker.acquire(config_.lock, config_.ttl, handover_limit());
}

std::uint64_t Scenario::await_grant(WorkerProcess& worker) {
  WorkerState& state = state_of(worker);
  wait_until(worker.name() + " to be granted the lock", handover_limit() + kAnswer,
             [&] { return !state.waiting || state.error; });
  if (state.error) throw DrillAborted{*state.error};
  advance_own_resource(worker);
  return state.token;
}

void Scenario::advance_own_resource(WorkerProcess& worker) {
  if (!config_.target.scratch) advance(worker);
}

WorkerProcess& Scenario::await_first_grant(const std::vector<WorkerProcess*>& workers) {
  WorkerProcess* first = nullptr;
  wait_until("the lock to change hands", handover_limit() + kAnswer, [&] {
    for (WorkerProcess* each : workers) {
      if (state_of(*each).error) throw DrillAborted{*state_of(*each).error};
      if (!state_of(*each).waiting) first = each;
    }
    return first != nullptr;
  });
  advance_own_resource(*first);
  return *first;
}

milliseconds Scenario::handover_limit() const {
  return 3 * config_.ttl + config_.lock_wait;
}

void Scenario::await_loss_noticed(WorkerProcess& worker) {
  const WorkerState& state = state_of(worker);
  wait_until(worker.name() + " to learn that its lease is over", handover_limit(),
             [&] { return !state.believes_held; });
}

void Scenario::release(WorkerProcess& worker) {
  const WorkerState& state = state_of(worker);
  if (!state.believes_held) return;
  worker.release();
  wait_until(worker.name() + " to release the lock", kAnswer, [&] { return !state.believes_held; });
}

void Scenario::advance(WorkerProcess& worker) {
  if (!config_.target.guarded) return;
  WorkerState& state = state_of(worker);
  if (state.advanced_to == state.token) return;
  if (config_.before_advance) {
    if (auto refusal = config_.before_advance(state.token)) throw DrillAborted{*std::move(refusal)};
  }
  state.error.reset();
  worker.advance(state.token, kAnswer);
  wait_until(worker.name() + " to advance the fence", kAnswer + kAnswer,
             [&] { return state.advanced_to == state.token || state.error; });
  if (state.error) throw DrillAborted{*state.error};
  log(worker.name(), fmt::format("advances the fence to {}", state.token));
}

// --- writes --------------------------------------------------------------------------------------

std::size_t Scenario::send_write(WorkerProcess& worker, std::uint64_t token, LeaseCheck check,
                                 std::string value) {
  const std::size_t id = record_.writes.size();
  if (value.empty()) value = fmt::format("{}{}", worker.name(), id + 1);
  Write write{.worker = worker.name(), .token = token, .value = std::move(value)};
  write.sent = now();
  state_of(worker).error.reset();
  worker.write(id + 1, token, write.value, check);
  record_.writes.push_back(std::move(write));
  return id;
}

const Write& Scenario::await_result(std::size_t write) {
  const WorkerState* state = nullptr;
  for (const auto& each : workers_) {
    if (each->process->name() == record_.writes.at(write).worker) state = each.get();
  }
  PAWL_ASSERT(state != nullptr);
  wait_until(fmt::format("the result of {}'s write", record_.writes[write].worker), kAnswer,
             [&] { return record_.writes[write].answered != Moment{} || state->error; });
  if (state->error) throw DrillAborted{*state->error};
  return record_.writes[write];
}

void Scenario::try_ways(WorkerProcess& worker, std::uint64_t token) {
  if (!config_.target.guarded || !record_.ways.empty()) return;
  WorkerState& state = state_of(worker);
  state.error.reset();
  worker.try_ways(token);
  wait_until(fmt::format("{} to write in every way", worker.name()), kAnswer,
             [&] { return !record_.ways.empty() || state.error; });
  if (state.error) throw DrillAborted{*state.error};
}

// --- faults --------------------------------------------------------------------------------------

void Scenario::freeze(WorkerProcess& worker) {
  worker.freeze();
  add_fault(FaultKind::kFrozen, worker.name());
  log(worker.name(), "is frozen (SIGSTOP)");
}

void Scenario::resume(WorkerProcess& worker) {
  end_fault(FaultKind::kFrozen, worker.name());
  log(worker.name(), "is resumed (SIGCONT)");
  worker.resume();
}

void Scenario::kill(WorkerProcess& worker) {
  WorkerState& state = state_of(worker);
  worker.kill();
  end_belief(state, client::boot_now());
  add_fault(FaultKind::kKilled, worker.name());
  log(worker.name(), "is killed (kill -9)");
}

void Scenario::restart(WorkerProcess& worker) {
  WorkerState& state = state_of(worker);
  const std::string name = worker.name();
  state.error.reset();
  state.waiting = false;
  // In place, because callers hold references to it.
  auto next = need(start_process(state, name));
  worker.take_over(*next);
  await_ready(state, name);
  end_fault(FaultKind::kKilled, name);
  log(name, fmt::format("is started again and still uses token {}", state.token));
}

void Scenario::delay_write(WorkerProcess& worker) {
  add_fault(FaultKind::kDelayed, worker.name(), "one of its writes is delayed");
  log(worker.name(), "sends a write that is delayed, and stops waiting for the result");
}

void Scenario::deliver_delayed_write(WorkerProcess& worker) {
  end_fault(FaultKind::kDelayed, worker.name());
  log(worker.name(), "its delayed write arrives");
}

void Scenario::cut_network(WorkerProcess& worker, Cut cut) {
  const WorkerState& state = state_of(worker);
  PAWL_ASSERT(state.proxy != nullptr && cut != Cut::kNone);
  state.proxy->cut(cut);
  const char* const note = cut == Cut::kBoth       ? "nothing passes between it and pawld"
                           : cut == Cut::kToServer ? "nothing passes from it to pawld"
                                                   : "nothing passes from pawld to it";
  add_fault(FaultKind::kCut, worker.name(), note);
  log(worker.name(), fmt::format("is cut off: {}", note));
}

void Scenario::restore_network(WorkerProcess& worker) {
  state_of(worker).proxy->cut(Cut::kNone);
  end_fault(FaultKind::kCut, worker.name());
  log(worker.name(), "can reach pawld again");
}

Fault& Scenario::add_fault(FaultKind kind, const std::string& target, std::string note) {
  record_.faults.push_back({kind, target, now(), {}, std::move(note)});
  return record_.faults.back();
}

void Scenario::end_fault(FaultKind kind, const std::string& target) {
  for (Fault& each : record_.faults) {
    if (each.kind == kind && each.target == target && !each.until) each.until = now();
  }
}

// --- the loop ------------------------------------------------------------------------------------

void Scenario::log(std::string_view source, std::string text) {
  record_.log.push_back({now(), std::string(source), std::move(text)});
  if (config_.on_log) config_.on_log(record_.log.back());
}

void Scenario::wait_until(std::string_view what, milliseconds limit,
                          const std::function<bool()>& holds) {
  const client::Instant from = client::boot_now();
  while (!holds()) {
    const client::Instant at = client::boot_now();
    if (at > from + limit) {
      throw DrillAborted{
          {Code::kUnavailable, fmt::format("timed out after {:.0f} s waiting for {}",
                                           std::chrono::duration<double>(limit).count(), what)}};
    }
    if (config_.on_wait) config_.on_wait(what, at - from);
    poll_once(std::min(from + limit + 1ms, at + kTick));
  }
}

void Scenario::run_for(milliseconds time) {
  const client::Instant end = client::boot_now() + time;
  while (client::boot_now() < end) poll_once(end);
}

void Scenario::poll_once(client::Instant limit) {
  std::vector<Pollable*> served;
  if (observer_) served.push_back(observer_.get());
  for (const auto& state : workers_) {
    if (state->proxy) served.push_back(state->proxy.get());
    if (state->process->running()) served.push_back(state->process.get());
  }
  std::vector<pollfd> wanted{{config_.stop_fd, POLLIN, 0}};
  std::vector<std::size_t> begins;
  for (const Pollable* each : served) {
    begins.push_back(wanted.size());
    for (const pollfd& fd : each->interest()) wanted.push_back(fd);
    limit = std::min(limit, each->next_timer());
  }
  begins.push_back(wanted.size());
  const auto left = std::chrono::ceil<milliseconds>(limit - client::boot_now());
  if (::poll(wanted.data(), wanted.size(), static_cast<int>(std::max(left, 0ms).count())) < 0)
    return;
  if (wanted.front().revents != 0) throw DrillInterrupted{};
  for (std::size_t i = 0; i < served.size(); ++i)
    served[i]->on_ready(std::span(wanted).subspan(begins[i], begins[i + 1] - begins[i]));
  if (observer_) {
    for (const wire::EventPush& event : observer_->take_events()) on_event(event);
  }
  for (const auto& state : workers_) {
    for (const WorkerEvent& event : state->process->take_events()) on_event(*state, event);
  }
}

}  // namespace pawl::drill
