// The two threads of a journal. Each runs from construction to destruction:
//
//   MaintenanceThread   spare segments, checkpoints, free space
//   BackupThread        backups: the target may be a disk that hangs, so maintenance must not wait
//
// Both wake up when the loop's thread reports new work. Destroy BackupThread first, then
// MaintenanceThread, then call journal.close().
#pragma once

#include <condition_variable>
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

class BackupThread {
 public:
  // `journal` is loaded and outlives this object.
  explicit BackupThread(Journal& journal);
  ~BackupThread();
  BackupThread(const BackupThread&) = delete;
  BackupThread& operator=(const BackupThread&) = delete;

 private:
  void run();

  Journal& journal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool work_ = false;
  bool stop_ = false;
  std::thread thread_;  // Last, because it uses all the others.
};

}  // namespace pawl::store::journal
