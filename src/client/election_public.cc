#include "pawl/election.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "client/pending_result.h"
#include "client/public_state.h"

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

std::optional<Leader> to_leader(const client::MaybeLeader& seen) {
  if (!seen) return std::nullopt;
  return Leader{seen->token.value, seen->owner, seen->value};
}

}  // namespace

Election::Election(Client& client, std::string name) : client_(client), name_(std::move(name)) {}

Result<Lease> Election::campaign(std::string_view value, CampaignOptions options,
                                 std::stop_token stop) {
  const auto wait = options.wait;
  if (wait && *wait > limits::kWaitMax) {
    return Error{Code::kInvalid, "wait: at most one hour; leave it out to wait for ever"};
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
  if (const auto error = state.unusable()) return *error;
  client::PendingResult<wire::Value> result(state.driver->wakeups(), client::this_thread());
  state.driver->command(
      {.words = {"INSPECT", name_}, .give_up = state.driver->now() + state.call_timeout},
      [&result](Result<wire::Value> shown) { result.set(std::move(shown)); });
  const Result<wire::Value> shown = result.wait();
  if (!shown) {
    // INSPECT changes nothing, so it cannot have taken effect.
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
    explicit Listener(Election::Callback callback) : callback_(std::move(callback)) {}

    void call(const Result<std::optional<Leader>>& leader) {
      {
        const std::lock_guard lock(mutex_);
        if (closed_) return;
        runner_ = std::this_thread::get_id();
      }
      callback_(leader);
      {
        const std::lock_guard lock(mutex_);
        runner_ = {};
      }
      returned_.notify_all();
    }

    // No call begins after this. Waits for one that runs, unless this is called from within it.
    void close(std::chrono::milliseconds wait_at_most) {
      std::unique_lock lock(mutex_);
      closed_ = true;
      if (runner_ == std::this_thread::get_id()) return;
      returned_.wait_for(lock, wait_at_most, [this] { return runner_ == std::thread::id(); });
    }

   private:
    const Election::Callback callback_;
    std::mutex mutex_;  // Not held while callback_ runs.
    std::condition_variable returned_;
    std::thread::id runner_;
    bool closed_ = false;
  };

  std::shared_ptr<client::Driver> driver;  // Empty when the client cannot be used.
  std::shared_ptr<Listener> listener;
  client::WatchNumber number{};
};

LeaderObservation Election::observe(Callback callback) {
  using State = LeaderObservation::State;
  auto state = std::make_unique<State>();
  if (const auto error = client_.state_->unusable()) {
    callback(*error);
    return LeaderObservation(std::move(state));
  }
  state->driver = client_.state_->driver;
  state->listener = std::make_shared<State::Listener>(std::move(callback));
  state->number = state->driver->watch(
      name_, [listener = state->listener](const Result<client::MaybeLeader>& seen) {
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
    // Leaked: its threads do not exist in this process, so it cannot be destroyed.
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
