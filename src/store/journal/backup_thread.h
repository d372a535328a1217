// Makes a journal's backups on a thread of its own, from construction to destruction.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/journal/journal.h"

namespace pawl::store::journal {

class BackupThread {
 public:
  // `journal` is loaded, and outlives this. Destroy this before the JournalThread and before
  // journal.close().
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
  std::thread thread_;  // Last: it uses all the others.
};

}  // namespace pawl::store::journal
