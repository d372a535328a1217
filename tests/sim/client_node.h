// A simulated client: the real client::Machine and client::Keeper on a clock of its own, and a worker that takes locks,
// works until the keeper calls the lease lost (the latest moment it may), gives them back, changes its mind, freezes and
// dies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/keeper.h"
#include "client/machine.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/world.h"

namespace pawl::sim {

struct Workload {
  std::vector<std::string> locks;
  Millis ttl{1000};
  unsigned freeze_percent = 3;  // Of the leases: frozen for up to three TTLs in the middle.
  unsigned die_percent = 3;     // Of the leases: dies without releasing.
  unsigned cancel_percent = 5;  // Of the waits.
};

class ClientNode final : public Endpoint {
 public:
  ClientNode(World& world, Network& network, int number, Rate rate, Workload workload,
             std::vector<Attempt>& history);

  void begin();
  // Finish what is held, start nothing new and fail no more.
  void wind_down() { winding_down_ = true; }
  [[nodiscard]] bool idle() const { return work_ == Work::kIdle && machine_->idle(); }
  [[nodiscard]] std::uint64_t grants() const { return grants_; }
  [[nodiscard]] std::string state() const;

  void on_bytes(LinkId link, std::string bytes) override;
  void on_hangup(LinkId link) override;

 private:
  enum class Work { kIdle, kAcquiring, kHolding, kReleasing };

  [[nodiscard]] client::Instant now() const { return client::Instant(rate_.local(world_.now())); }
  [[nodiscard]] Attempt& attempt() { return history_[attempt_]; }
  void pump();  // Let machine and worker do what is due, and come back at the next deadline.
  void connect_if_wanted();
  void work();
  void start_acquire();
  void take(client::Completion& done);
  void acquired(const Result<client::Held>& held);
  void look_at_lease();
  void start_release();
  void freeze(Nanos duration);
  void die();
  void rest();
  void be_born();

  World& world_;
  Network& network_;
  const int number_;
  const Rate rate_;
  const Workload workload_;
  std::vector<Attempt>& history_;

  std::unique_ptr<client::Machine> machine_;
  std::unique_ptr<client::Keeper> keeper_;
  std::optional<LinkId> link_;
  bool connecting_ = false;
  std::uint64_t life_ = 0;   // Events of a former life are ignored.
  std::uint64_t alarm_ = 0;  // Only the newest alarm counts.

  bool frozen_ = false;
  std::vector<std::pair<LinkId, std::string>> arrived_;  // While frozen; an empty text is a hang-up.

  Work work_ = Work::kIdle;
  bool winding_down_ = false;
  client::CallId call_;
  std::size_t attempt_ = 0;
  client::Held held_{};
  client::LeaseNumber lease_{};
  client::Instant act_at_{};  // When the worker does its next thing.
  std::uint64_t grants_ = 0;
};

}  // namespace pawl::sim
