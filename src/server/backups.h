// Backups: the store makes them beside the loop. The connection that asked for one waits, as in a
// blocking WAIT, and no other does. A backup goes on when that connection hangs up: it is complete
// or absent either way, and the log has its outcome.
//
//   backups.order(session, {directory, …});  // BACKUP
//   backups.begin_ordered();     // after the turn's batch: what was sent before is in it
//   backups.collect_finished(now);  // at the beginning of each turn
//
// The store wakes the loop when it is done (Store::wake_with). A backup whose disk does not answer
// is given up after limits::kBackupStallMax, so that the next one can be made. One thread owns it.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "server/connections.h"
#include "server/session.h"
#include "server/telemetry.h"
#include "store/store.h"

namespace pawl::server {

class Backups {
 public:
  Backups(store::Store& store, Connections& connections, Log& log, Telemetry& telemetry)
      : store_(store), connections_(connections), log_(log), telemetry_(telemetry) {}

  // From order() until its outcome was collected.
  [[nodiscard]] bool busy() const { return current_.has_value(); }
  // Blocks the session until the outcome is known. Not while busy().
  void order(Session& session, store::BackupOrder order);
  // Hands what was ordered to the store, once.
  void begin_ordered();
  // Answers the one whose backup has ended, if it has.
  void collect_finished(Tick now);
  // When collect_finished() has to be called even if nothing happens; kNever without a backup.
  [[nodiscard]] Tick next_deadline() const;

 private:
  struct Current {
    store::BackupOrder order;
    ConnectionId connection;  // it may have closed by now
    std::string requester;    // description, user and address of its session, for the log
    std::string user;
    std::string address;
    bool begun = false;
    std::uint64_t steps = 0;  // Of the store, when it was seen to make progress last,
    Tick progress = kNever;   // and when that was.
  };

  void finish(const Result<store::BackupDone>& outcome);
  static void log_outcome(Log& log, const Current& backup,
                          const Result<store::BackupDone>& outcome);

  store::Store& store_;
  Connections& connections_;
  Log& log_;
  Telemetry& telemetry_;
  std::optional<Current> current_;
};

}  // namespace pawl::server
