// Runs a journal's background work on a thread of its own, from construction to destruction.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/journal/journal.h"

namespace pawl::store::journal {

class JournalThread {
 public:
  // `journal` is loaded, and outlives this. Destroy this before journal.close().
  explicit JournalThread(Journal& journal);
  ~JournalThread();
  JournalThread(const JournalThread&) = delete;
  JournalThread& operator=(const JournalThread&) = delete;

 private:
  void run();
  void wake();

  Journal& journal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool work_ = true;
  bool stop_ = false;
  std::thread thread_;  // Last: it uses all the others.
};

}  // namespace pawl::store::journal
