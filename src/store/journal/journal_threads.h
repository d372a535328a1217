// The threads of a journal:
//
//   MaintenanceThread   spare segments, checkpoints, free space; from construction to destruction
//   BackupThreads       one for each backup: the target may be a disk that hangs, so nobody waits
//                       for it
//
// Destroy BackupThreads first, then MaintenanceThread, then call journal.close().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "store/journal/journal.h"

namespace pawl::store::journal {

class MaintenanceThread {
 public:
  // `journal` is loaded and outlives this object.
  explicit MaintenanceThread(Journal& journal);
  ~MaintenanceThread();
  MaintenanceThread(const MaintenanceThread&) = delete;
  MaintenanceThread& operator=(const MaintenanceThread&) = delete;

 private:
  void run();
  void wake();

  Journal& journal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool work_ = true;
  bool stop_ = false;
  std::thread thread_;  // Last, because it uses all the others.
};

class BackupThreads {
 public:
  // `journal` is loaded and outlives this object.
  explicit BackupThreads(Journal& journal);
  // Waits a moment for the backup in progress to end its step. If its disk does not answer, the
  // thread stays behind, with the journal's Files in its hands: the process must exit soon, and
  // without destroying them.
  ~BackupThreads();
  BackupThreads(const BackupThreads&) = delete;
  BackupThreads& operator=(const BackupThreads&) = delete;

  // Ends it as the destructor does. False: a thread stays behind.
  bool stop();

 private:
  // Shared with the threads, which may outlive this object.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t running = 0;
    bool stop = false;
  };
  static void run(const std::shared_ptr<State>& state, const std::shared_ptr<BackupRun>& backup);

  Journal& journal_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace pawl::store::journal
