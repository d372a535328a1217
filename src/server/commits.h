// Commits: hands the core's changes to the store, one batch per turn at most, and learns when each is
// durable, at once or in a later turn.
//
//   commits.collect();                     // at the beginning of a turn: batches of earlier turns
//   const bool synced = commits.submit();  // the changes of this turn
//   connections.send(session, commits.durable());
//
// A store that fails ends the service: `on_fatal` is called once, and nothing may be sent after it.
// One thread owns it.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/batch.h"
#include "base/log.h"
#include "core/core.h"
#include "server/observers.h"
#include "server/service_clock.h"
#include "server/service_log.h"
#include "server/telemetry.h"
#include "store/store.h"

namespace pawl::server {

class Commits final : private store::Sink {
 public:
  Commits(store::Store& store, core::Core& core, ServiceClock& clock, Observers& observers,
          ServiceLog& service_log, Telemetry& telemetry, Log& log,
          std::function<void(const Error&)> on_fatal);

  // Submits what the core has changed since the last call, if anything, and if the store is ready
  // for it; otherwise it stays with the core, and is joined by what changes until then. True: it is
  // durable already, and the clock was read after the sync.
  bool submit();
  // Passes everything that is durable to the store, if the store asks for it because its files are
  // damaged. After submit().
  void provide_state();
  // Learns which earlier batches have become durable.
  void collect() {
    if (!in_flight_.empty()) ask_store();
  }
  // The same, and of a shared store whether another process is active.
  void ask_store() { store_.pump(*this); }
  // The process that is active instead of this one, if ask_store() has learned of a new one; once.
  [[nodiscard]] std::optional<store::Active> take_deposed() {
    return std::exchange(deposed_, std::nullopt);
  }
  // Forgets what is under way: the core that it belongs to is gone.
  void forget_batches();
  // Whether anything is under way.
  [[nodiscard]] bool any_in_flight() const { return !in_flight_.empty(); }

  // Ends the service as a store that fails does. `text` is logged.
  void fail(const std::string& text, const Error& error);

  // Every batch up to this one is durable.
  [[nodiscard]] BatchId durable() const { return durable_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct Submitted {
    BatchId batch;
    Nanos at;  // uptime
  };

  // --- store::Sink; only inside submit() and ask_store() -------------------------------------------
  void durable(BatchId batch) override;
  void failed(BatchId batch, const Error& error) override;
  void deposed(const store::Active& active) override { deposed_ = active; }
  Result<void> followed(std::string_view operations) override;
  void follow_again() override { core_.unload_all(); }

  store::Store& store_;
  core::Core& core_;
  ServiceClock& clock_;
  Observers& observers_;
  ServiceLog& service_log_;
  Telemetry& telemetry_;
  Log& log_;
  const std::function<void(const Error&)> on_fatal_;
  Batch batch_;                       // kept for its memory
  std::vector<Submitted> in_flight_;  // in order of submission
  BatchId durable_;
  bool failed_ = false;
  std::optional<store::Active> deposed_;
};

}  // namespace pawl::server
