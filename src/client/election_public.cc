#include "pawl/election.h"

#include <algorithm>
#include <utility>

#include "client/pending_result.h"
#include "client/public_state.h"
#include "client/repeated_acquire.h"

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
  AcquireOptions acquire = to_acquire(value, std::move(options));
  acquire.wait = wait.value_or(client::kDurationMax);
  if (wait) return client_.acquire(name_, std::move(acquire), std::move(stop));
  return client::acquire_repeatedly(client_, name_, acquire, stop);
}

Result<void> Election::resign(Lease leadership, std::chrono::milliseconds wait_at_most) {
  return leadership.release(wait_at_most);
}

Result<std::optional<Leader>> Election::leader() {
  const Client::State& state = *client_.state_;
  if (const auto error = state.unusable()) return *error;
  const auto driver = state.driver;  // The client may be destroyed while this waits.
  client::PendingResult<wire::Value> result(driver->wakeups(), client::this_thread());
  driver->command({.words = {"INSPECT", name_}, .give_up = driver->now() + state.call_timeout},
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
  using Listener = client::Listener<const Result<std::optional<Leader>>&>;

  std::shared_ptr<client::Driver> driver;  // Empty when the client cannot be used.
  std::shared_ptr<Listener> listener;      // Shared with the calls that are queued.
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
