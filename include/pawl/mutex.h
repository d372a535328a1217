// A lock of pawld as a mutex, for std::unique_lock and std::lock_guard.
//
//   pawl::Mutex mutex(client, "reports/nightly");
//   std::unique_lock lock(mutex);
//
// The weaker form, for work that is only wasteful to do twice. A mutex promises to stay locked
// until unlock(); no lock across machines can keep that promise: a holder may be disconnected or
// frozen, and the lock is granted to another. Code written for a mutex does not check whether it
// still holds the lock, and does not send the token with its writes. Where that matters use
// Client::acquire(), check() and token(); lease() gives access to them here.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include "pawl/client.h"
#include "pawl/lease.h"

namespace pawl {

// For one thread at a time, like any object that is not thread-safe; each thread has its own, with
// the same client and name. Not recursive: lock() throws when the same thread has locked it.
class PAWL_PUBLIC Mutex {
 public:
  // options.wait is the wait of one attempt of lock() (0: a minute); lock() repeats it for ever.
  Mutex(Client& client, std::string name,
        AcquireOptions options = {.wait = std::chrono::minutes(1)});

  // Throws std::system_error when pawld refuses or the client cannot be used. While pawld cannot be
  // reached, or refuses for a while (a full disk), it keeps trying, with pauses of up to 2 s.
  void lock();
  [[nodiscard]] bool try_lock();
  void unlock();
  // The lease, while locked.
  [[nodiscard]] const Lease* lease() const { return lease_ ? &*lease_ : nullptr; }

 private:
  Client& client_;
  const std::string name_;
  AcquireOptions options_;
  std::optional<Lease> lease_;
};

// A mutex that the thread which locked it may lock again, under one lease and one token. (A second
// token for the inner lock would fence out the outer one.) Shared by the threads of a process, like
// a std::recursive_mutex: they exclude each other without asking pawld.
class PAWL_PUBLIC RecursiveMutex {
 public:
  RecursiveMutex(Client& client, std::string name,
                 AcquireOptions options = {.wait = std::chrono::minutes(1)});

  // As Mutex::lock(). An inner lock() throws std::system_error (owner_dead) when the lease was lost
  // meanwhile; after the outermost unlock() it can be locked again, with a new token.
  void lock();
  [[nodiscard]] bool try_lock();  // False also for an inner lock of a lost lease.
  void unlock();
  // The lease, while this thread has it locked; the same at every depth.
  [[nodiscard]] const Lease* lease() const { return outermost_.lease(); }

 private:
  std::recursive_mutex inside_;
  // Guarded by inside_.
  Mutex outermost_;
  std::size_t depth_ = 0;
};

}  // namespace pawl
