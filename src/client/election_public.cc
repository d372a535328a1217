#include "pawl/election.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "client/answer.h"
#include "client/client_handle.h"
#include "client/lease_handle.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

AcquireOptions to_acquire(std::string_view value, CampaignOptions options) {
  AcquireOptions acquire;
  acquire.ttl = options.ttl;
  acquire.owner = std::move(options.owner);
  acquire.max_hold = options.max_hold;
  acquire.progress_every = options.progress_every;
  acquire.on_change = std::move(options.on_change);
  if (!value.empty()) acquire.meta.emplace(client::kLeaderValue, value);
  return acquire;
}

std::optional<Leader> to_leader(const client::LeaderNow& seen) {
  if (!seen) return std::nullopt;
  return Leader{seen->token.value, seen->owner, seen->value};
}

}  // namespace

Election::Election(Client& client, std::string name) : client_(client), name_(std::move(name)) {}

Result<Lease> Election::campaign(std::string_view value, CampaignOptions options,
                                 std::stop_token stop) {
  const auto wait = options.wait;
  if (wait && *wait > limits::kWaitMax) {
    return Error{Code::kInvalid, "wait: an hour at most, or none: for ever"};
  }
  AcquireOptions acquire = to_acquire(value, std::move(options));
  acquire.wait = wait.value_or(limits::kWaitMax);
  for (;;) {
    auto leadership = client_.acquire(name_, acquire, stop);
    const bool again =
        !leadership && !wait && retry_may_help(leadership.error().code) && !stop.stop_requested();
    if (!again) return leadership;
  }
}

Result<bool> Election::resign(Lease leadership, std::chrono::milliseconds wait_at_most) {
  return leadership.release(wait_at_most);
}

Result<std::optional<Leader>> Election::leader() {
  const Client::State& state = *client_.state_;
  if (const auto trouble = state.trouble()) return *trouble;
  client::Answer<wire::Value> answer(state.driver->waking(), client::this_thread());
  state.driver->command(
      {.words = {"INSPECT", name_}, .give_up = state.driver->now() + state.call_timeout},
      [&answer](Result<wire::Value> shown) { answer.set(std::move(shown)); });
  const Result<wire::Value> shown = answer.wait();
  if (!shown) {
    // To ask changes nothing, so nothing can have happened.
    const Code code = shown.error().code;
    return Error{code == Code::kUnknown ? Code::kUnavailable : code, shown.error().detail};
  }
  return to_leader(client::read_leader(*shown));
}

// --- Observing -----------------------------------------------------------------------------------

struct LeaderObservation::State {
  // Shared with the calls that are queued on the callback thread.
  class Listener {
   public:
    explicit Listener(Election::Told told) : told_(std::move(told)) {}

    void call(const Result<std::optional<Leader>>& leader) {
      {
        const std::lock_guard lock(mutex_);
        if (over_) return;
        runner_ = std::this_thread::get_id();
      }
      told_(leader);
      {
        const std::lock_guard lock(mutex_);
        runner_ = {};
      }
      returned_.notify_all();
    }

    // No call begins any more. Waits for one that runs, unless we are inside it.
    void close(std::chrono::milliseconds wait_at_most) {
      std::unique_lock lock(mutex_);
      over_ = true;
      if (runner_ == std::this_thread::get_id()) return;
      returned_.wait_for(lock, wait_at_most, [this] { return runner_ == std::thread::id(); });
    }

   private:
    const Election::Told told_;
    std::mutex mutex_;  // Not held while told_ runs.
    std::condition_variable returned_;
    std::thread::id runner_;
    bool over_ = false;
  };

  std::shared_ptr<client::Driver> driver;  // Empty when the client cannot be used.
  std::shared_ptr<Listener> listener;
  client::WatchNumber number{};
};

LeaderObservation Election::observe(Told told) {
  using State = LeaderObservation::State;
  auto state = std::make_unique<State>();
  if (const auto trouble = client_.state_->trouble()) {
    told(*trouble);
    return LeaderObservation(std::move(state));
  }
  state->driver = client_.state_->driver;
  state->listener = std::make_shared<State::Listener>(std::move(told));
  state->number = state->driver->watch(
      name_, [listener = state->listener](const Result<client::LeaderNow>& seen) {
        seen ? listener->call(to_leader(*seen)) : listener->call(seen.error());
      });
  return LeaderObservation(std::move(state));
}

LeaderObservation::LeaderObservation(std::unique_ptr<State> state) : state_(std::move(state)) {}
LeaderObservation::LeaderObservation(LeaderObservation&&) noexcept = default;

LeaderObservation& LeaderObservation::operator=(LeaderObservation&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  return *this;
}

LeaderObservation::~LeaderObservation() {
  end();
}

void LeaderObservation::end() noexcept {
  if (!state_) return;
  if (state_->driver && state_->driver->forked()) {
    // Not even destroyed: what belongs to threads that do not exist here cannot be.
    static_cast<void>(state_.release());
    return;
  }
  if (state_->driver) {
    state_->driver->unwatch(state_->number);
    state_->listener->close(kDestructorWait);
  }
  state_.reset();
}

}  // namespace pawl
