// A simulated pawld: the real engine and the real journal on a simulated disk, with a clock of its
// own. It crashes (the process, or the power), loses what was not synced, starts again, and pauses.
// Its disk takes time, and sometimes a long one: whatever pawld says in a turn leaves when the
// turn's writes are done. Its machine can be lost for good; then a new one gets a store that was
// restored from a backup.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "pawld/restore_backup.h"
#include "server/engine.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/server_watch.h"
#include "sim/world.h"
#include "store/journal/journal.h"
#include "store/testlib/simulated_disk.h"

namespace pawl::sim {

// The longest TTL and DELAY that the simulated pawld allows, and so how long it grants nothing
// after a restore. Of the order of a run's seconds.
inline constexpr Millis kMaxTtl{4000};
inline constexpr Millis kMaxDelay{1000};
// Where BACKUP may put its directories: they outlive the machine.
inline constexpr const char* kBackups = "/backups";

class ServerNode final : public ServerEndpoint,
                         private server::Network,
                         private server::ClockSource {
 public:
  // `faults` receives what the node itself sees go wrong, `pauses` when it stood still.
  ServerNode(World& world, Rate rate, Millis ttl, std::vector<std::string>& faults,
             std::vector<Pause>& pauses);
  ~ServerNode() override;

  void attach(sim::Network& network) { network_ = &network; }

  // What a crash leaves behind must always be startable, and what damage leaves behind must be
  // refused cleanly.
  void start();
  // The process ends; what it wrote stays in the page cache, synced or not, until the power goes.
  void kill();
  // The same, while the `operations`th disk operation from now is under way.
  void kill_soon(std::uint64_t operations);
  void cut_power();
  // The power goes at the `operations`th disk operation from now: in the middle of a commit, a
  // switch, a checkpoint.
  void cut_power_soon(std::uint64_t operations);
  // That operation fails with an I/O error instead: pawld must end at once.
  void fail_disk_soon(std::uint64_t operations);
  // While it is full, nothing more fits on the disk.
  void fill_disk(bool full);
  // Only while down: one bit of one file changes.
  void flip_a_bit();
  // The machine is lost with all its data, and a new store is made from a backup, for the next
  // start().
  [[nodiscard]] std::optional<pawld::Restored> lose_and_restore(const std::string& backup);
  void pause(Nanos duration);
  // The whole machine sleeps: CLOCK_MONOTONIC, which pawld goes by, stands still meanwhile.
  void suspend(Nanos duration);
  // An operator sets the wall clock, or NTP steps it, either way. Nothing may depend on it.
  void jump_wall_clock(Nanos by);
  // On this connection `owner` waits, and does nothing else.
  void expect_wait(LinkId link, const std::string& owner);
  [[nodiscard]] bool up() const { return engine_ != nullptr; }
  [[nodiscard]] const ServerWatch& watch() const { return watch_; }
  [[nodiscard]] core::Totals totals() const { return engine_->totals(); }
  [[nodiscard]] Millis restoring() const { return engine_->core().restoring_for(engine_->now()); }
  [[nodiscard]] std::uint64_t crashes() const { return crashes_; }
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

  bool on_connect(LinkId link, const std::string& host) override;
  void on_bytes(LinkId link, std::string bytes) override;
  void on_hangup(LinkId link) override;

 private:
  // server::Network
  std::size_t send(server::ConnectionId connection, std::string_view bytes) override;
  void want_input(server::ConnectionId, bool) override {}
  void close(server::ConnectionId connection) override;
  // server::ClockSource
  server::ClockReading read() override;

  Result<store::Loaded> try_start();
  void serve(const store::Loaded& loaded);
  void turn_soon();
  void turn();
  void wake_at(Nanos delay);
  enum class Clock { kRuns, kStops };
  void stall(Nanos duration, Clock clock = Clock::kRuns);
  void maintenance();
  enum class Ended { kProcess, kMachine };
  void crashed(const char* how, Ended ended);
  // What the disk's operations since the last look have cost.
  void charge();
  [[nodiscard]] Nanos local() const { return rate_.local(world_.now() + spent_) - slept_; }

  World& world_;
  const Rate rate_;
  std::vector<std::string>& faults_;
  std::vector<Pause>& pauses_;
  sim::Network* network_ = nullptr;
  store::SimulatedDisk disk_;
  std::string directory_ = "/pawl-data";
  SeededRandom random_;  // Lease ids: not the world's, so that tracing a run does not change it.
  SeededRandom speed_;   // Of the disk.
  NoLog log_;
  ServerWatch watch_;

  std::unique_ptr<store::journal::Journal> journal_;
  std::unique_ptr<server::Engine> engine_;
  std::uint64_t life_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint64_t refusals_ = 0;
  std::uint64_t wake_ = 0;
  std::uint64_t sequence_ = 0;  // Of the last batch that was acknowledged.
  std::uint64_t batches_before_ = 0;
  bool turn_due_ = false;
  bool dying_ = false;
  bool paused_ = false;
  bool power_was_lost_ =
      true;  // Or the disk failed: what was not synced is decided at the next start.
  Nanos spent_{0};
  Nanos slept_{0};
  Nanos wall_jumped_{0};
  std::uint64_t operations_seen_ = 0;
  std::set<LinkId> hung_up_;
  std::map<LinkId, std::string> waits_on_;  // Whose only wait it is.
  std::map<std::string, int> asked_on_;     // The number of connections.
  std::set<LinkId> unread_;                 // Bytes have come since the last turn.
  struct Flip {
    std::string path;
    std::uint64_t offset;
    unsigned bit;
  };
  std::optional<Flip> flip_;
  struct Arrival {
    LinkId link;
    bool hangup;
    std::string bytes;
  };
  std::vector<Arrival> arrived_;  // While paused.
};

}  // namespace pawl::sim
