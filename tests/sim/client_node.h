// A simulated client: the real client::Machine and client::Keeper on a clock of its own, and a
// worker that takes locks, works until the keeper calls the lease lost (the latest moment it may),
// gives them back, changes its mind, freezes and dies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/keeper.h"
#include "sim/history.h"
#include "sim/line.h"
#include "sim/worker.h"

namespace pawl::sim {

struct Workload {
  std::vector<std::string> locks;
  std::string election;  // A lock that is only ever taken alone and exclusively.
  Millis ttl{1000};
  unsigned freeze_percent = 3;  // Of the leases: frozen for up to three TTLs in the middle.
  unsigned die_percent = 3;     // Of the leases: dies without releasing.
  unsigned cancel_percent = 5;  // Of the waits.
  unsigned long_percent = 10;   // Of the leases: held for up to three TTLs.
};

class ClientNode {
 public:
  ClientNode(World& world, Network& network, GuardModel& guard, int number, Rate rate,
             Workload workload, History& history);

  void begin();
  // Finish what is held, start nothing new and fail no more.
  void wind_down() { winding_down_ = true; }
  [[nodiscard]] bool idle() { return work_ == Work::kIdle && line_.machine().idle(); }
  [[nodiscard]] std::uint64_t grants() const { return grants_; }
  [[nodiscard]] std::string state() const;

 private:
  enum class Work { kIdle, kAcquiring, kHolding, kReleasing };

  [[nodiscard]] client::Instant now() const { return line_.now(); }
  [[nodiscard]] Attempt& attempt() { return history_.attempts[attempt_]; }
  void pump();  // Let machine and worker do what is due, and come back at the next deadline.
  void work();
  [[nodiscard]] client::AcquireCall choose();
  void start_acquire();
  void cancel();
  void take(client::Completion& done);
  void acquired(const Result<client::GrantedLease>& held);
  void note_place();
  void note_renewal(const client::Completion& done, const client::Keeper::Counters& before);
  void look_at_lease();
  void start_release();
  void released(const Result<client::ReleaseResult>& done);
  void freeze(Nanos duration);
  void die();
  void rest();

  World& world_;
  const int number_;
  const Workload workload_;
  History& history_;
  Worker worker_;
  Line line_;
  std::unique_ptr<client::Keeper> keeper_;
  std::uint64_t life_ = 0;

  Work work_ = Work::kIdle;
  bool winding_down_ = false;
  client::CallId call_;
  std::size_t attempt_ = 0;
  std::size_t release_ = 0;
  client::GrantedLease held_{};
  client::LeaseNumber lease_{};
  client::Instant adopted_{};
  client::Instant act_at_{};  // When the worker does its next thing.
  std::uint64_t grants_ = 0;
};

}  // namespace pawl::sim
