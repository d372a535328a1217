// Observe: all events from one moment on without a gap, over any number of connections.
//
//   OBSERVE ──▶ parked, receives events ──cancel──▶ UNOBSERVE, unless another flow has this prefix
//      ▲               │
//      ╰─ FROM last id ╯ connection lost
//
// When pawld does not know that id any more (it has restarted meanwhile, or too much has happened)
// it sends `reset`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/flow.h"

namespace pawl::client {

class ObserveFlow;

// The observations on the machine's one connection. pawld sends each event once per connection,
// however many prefixes it matches; this passes it to every observation that it concerns.
class Observers {
 public:
  void add(CallId call, ObserveFlow& flow) { flows_.emplace(call, &flow); }
  void remove(CallId call) { flows_.erase(call); }
  // Whether an observation has exactly this prefix. Then UNOBSERVE must not be sent for it.
  [[nodiscard]] bool has_prefix(std::string_view prefix) const;
  // The event from which all observations of this prefix that have begun can continue.
  [[nodiscard]] std::optional<wire::EventId> oldest(std::string_view prefix) const;

  // An event arrived. `order`: see Completion.
  void on_event(const wire::EventPush& event, std::uint64_t order);
  void report(ObservedEvent observed) { observed_.push_back(std::move(observed)); }
  [[nodiscard]] std::vector<ObservedEvent> take() { return std::exchange(observed_, {}); }
  // Drops the events of this observation that were not taken yet.
  void drop_events(CallId call);

 private:
  std::map<CallId, ObserveFlow*> flows_;
  std::vector<ObservedEvent> observed_;
};

class ObserveFlow final : public Flow {
 public:
  // Registers with `observers`, which outlives it.
  ObserveFlow(CallId id, ObserveCall call, Observers& observers);
  ~ObserveFlow() override;

  [[nodiscard]] const std::string& prefix() const { return call_.prefix; }
  // True when the event concerns this observation and was not reported before. It counts as
  // reported from now on.
  [[nodiscard]] bool accept(const wire::EventPush& event);
  // The last event reported; nullopt before the observation has begun.
  [[nodiscard]] const std::optional<wire::EventId>& last() const { return last_; }
  void cancel(Instant now) override;
  // The shortest prefix first. pawld starts to send at once, and sends each event once: if a longer
  // prefix went first, its events would overtake those that the shorter one has missed, which would
  // then look old.
  [[nodiscard]] std::size_t send_order() const override { return call_.prefix.size(); }

 private:
  enum class Step : std::uint8_t { kBegin, kEnd };

  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  void resume_after_disconnect(Instant now) override;
  // Another observation of this connection may have begun: what it receives would overtake what
  // this one has missed, see send_order().
  [[nodiscard]] bool hangs_up_when_put_off() const override { return true; }
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<ObserveEnded>(std::move(error));
  }

  void began(const wire::Value& value);
  void unobserve();

  const CallId id_;
  const ObserveCall call_;
  Observers& observers_;
  Step step_ = Step::kBegin;
  // Where the next connection continues; nullopt until the observation has begun.
  std::optional<wire::EventId> last_;
};

}  // namespace pawl::client
