// Backups: the store makes them beside the loop. The connection that asked for one waits, as in a
// blocking WAIT, and no other does. A backup goes on when that connection hangs up: it is complete
// or absent either way, and the log has its outcome.
//
//   backups.order(session, {directory, …});  // BACKUP
//   backups.begin_ordered();     // after the turn's batch: what was sent before is in it
//   backups.collect_finished();  // at the beginning of each turn
//
// The store wakes the loop when it is done (Store::wake_with). One thread owns it.
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
  void collect_finished();

 private:
  struct Current {
    store::BackupOrder order;
    ConnectionId connection;  // it may have closed by now
    std::string requester;    // description, user and address of its session, for the log
    std::string user;
    std::string address;
    bool begun = false;
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
