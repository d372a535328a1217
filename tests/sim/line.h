// The driver of one simulated client::Machine: its connection, its clock and its alarm. What the
// sockets and threads of the real drivers do, on virtual time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/machine.h"
#include "sim/network.h"
#include "sim/world.h"

namespace pawl::sim {

class Line final : public Endpoint {
 public:
  // `on_event` is called whenever there may be something to do; it ends with settle().
  Line(World& world, Network& network, Rate rate, std::function<void()> on_event);

  [[nodiscard]] client::Machine& machine() { return *machine_; }
  // CLOCK_BOOTTIME: it goes on while the process or its machine stands still.
  [[nodiscard]] client::Instant now() const {
    return client::Instant(rate_.local(world_.now()) - stopped_);
  }
  [[nodiscard]] Moment moment(client::Instant instant) const {
    return rate_.moment(instant.time_since_epoch() + stopped_);
  }
  [[nodiscard]] bool frozen() const { return frozen_; }

  // Connects, closes and sends as the machine wants, and comes back at `wake` or at the machine's
  // own timer.
  void settle(client::Instant wake);
  // Comes back at once.
  void nudge(Nanos delay);
  // What arrives meanwhile is read when it wakes, before anything else.
  void freeze();
  void thaw();
  // The process dies: a new machine, no connection.
  void be_reborn();

  void on_bytes(LinkId link, std::string bytes) override;
  void on_hangup(LinkId link) override;

 private:
  void connect();
  [[nodiscard]] std::vector<client::Address> some_nodes();

  World& world_;
  Network& network_;
  const Rate rate_;
  const std::function<void()> on_event_;
  std::unique_ptr<client::Machine> machine_;
  std::optional<LinkId> link_;
  std::uint64_t connecting_ = 0;  // The attempt that is under way; 0: none.
  std::uint64_t attempts_ = 0;
  bool frozen_ = false;
  Moment frozen_since_{};
  Nanos stopped_{0};  // What the clock has missed: nothing.
  std::vector<std::pair<LinkId, std::string>>
      arrived_;              // While frozen; an empty text is a hang-up.
  std::uint64_t life_ = 0;   // Events of a former life are ignored.
  std::uint64_t alarm_ = 0;  // Only the newest alarm counts.
};

}  // namespace pawl::sim
