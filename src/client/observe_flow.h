// Observe: events from one moment on without a gap, over any number of connections.
//
//   begin (OBSERVE) ──▶ parked, hears events ──cancel──▶ end (UNOBSERVE, unless someone else observes the same prefix)
//       ▲                      │
//       ╰── FROM the last id ──╯ connection lost
//
// When pawld does not know that id any more (it has restarted meanwhile, or too much has happened)
// it says `reset`.
#pragma once

#include <string>

#include "client/flow.h"
#include "client/observers.h"

namespace pawl::client {

class ObserveFlow final : public Flow {
 public:
  // Joins `observers`, which outlives it.
  ObserveFlow(CallId id, ObserveCall call, Observers& observers);
  ~ObserveFlow() override;

  [[nodiscard]] const std::string& prefix() const { return call_.prefix; }
  // Whether this event concerns us and has not been told yet; then it has been, from now on.
  [[nodiscard]] bool news(const wire::EventPush& event);
  // The last it was told; nothing before it has begun.
  [[nodiscard]] const std::optional<wire::EventId>& last() const { return last_; }
  void cancel(Instant now) override;
  // Whoever hears most goes on first. pawld begins to tell at once, and each event once: had the
  // narrower prefix gone on first, its events would overtake what the wider one has missed, which
  // would then pass for old.
  [[nodiscard]] std::size_t turn() const override { return call_.prefix.size(); }

 private:
  enum class Step : std::uint8_t { kBegin, kEnd };

  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  void on_cut(Instant now) override;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<Unobserved>(std::move(error));
  }

  void began(const wire::Value& value);
  void unobserve();

  const CallId id_;
  const ObserveCall call_;
  Observers& observers_;
  Step step_ = Step::kBegin;
  std::optional<wire::EventId>
      last_;  // where the next connection goes on; nothing until it has begun
};

}  // namespace pawl::client
