// The store of one run of pawld: opens the kind that is configured, and owns the threads that it
// needs.
//
//   OpenStore opened;
//   opened.open(config, random);
//   opened.check_machine(...);
//   engine.load(...);                // loads opened.store()
//   opened.start_threads();
//   opened.close();
#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "base/random.h"
#include "pawl/result.h"
#include "pawld/machine_mark.h"
#include "pawld/options.h"
#include "store/etcd/etcd_store.h"
#include "store/journal/journal.h"
#include "store/journal/journal_threads.h"
#include "store/posix_files.h"
#include "store/store.h"

namespace pawl::pawld {

class OpenStore {
 public:
  // Opens the store that `config` names; it is not loaded yet. May be called again after kBusy.
  Result<void> open(const Config& config, Random& random, Log& log);

  // After open().
  [[nodiscard]] store::Store& store();
  [[nodiscard]] store::PosixFiles& files() { return files_; }
  // The same store if it is one in etcd, else nullptr.
  [[nodiscard]] store::etcd_log::EtcdStore* etcd() { return etcd_.get(); }

  // Checks that the data was last used on this machine (machine_mark.h). Before the store is
  // loaded.
  [[nodiscard]] Result<MachineCheck> check_machine(const std::string& id_path, Adopt adopt,
                                                   Random& random);

  // Starts the threads of the store, if it needs any. After the store was loaded.
  void start_threads();

  // Ends the threads and closes the store.
  Result<void> close();
  // After close(): a backup hangs on its disk, and its thread could not be ended. Then the process
  // must exit without destroying this object.
  [[nodiscard]] bool backup_hangs() const { return backup_hangs_; }

 private:
  store::PosixFiles files_;
  std::unique_ptr<store::Store> store_;
  // The same store if it is a journal, else null: only a journal has a machine mark and threads.
  store::journal::Journal* journal_ = nullptr;
  // Instead of store_.
  std::unique_ptr<store::etcd_log::EtcdStore> etcd_;
  // Destroyed before the store, backups first.
  std::unique_ptr<store::journal::MaintenanceThread> maintenance_;
  std::unique_ptr<store::journal::BackupThreads> backups_;
  bool backup_hangs_ = false;
};

// How the store in etcd is opened. kInvalid: a file cannot be used.
[[nodiscard]] Result<store::etcd_log::EtcdStoreSettings> etcd_settings(const Config& config);

// The detail of an error of open() or load(), followed by what to do about it.
[[nodiscard]] std::string with_advice(const Error& error, const Config& config);

}  // namespace pawl::pawld
