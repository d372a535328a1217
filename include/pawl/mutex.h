// A lock of pawld's as a mutex, for std::unique_lock and std::lock_guard.
//
//   pawl::Mutex mutex(client, "reports/nightly");
//   std::unique_lock lock(mutex);
//
// The weaker form, for work that is merely wasteful to do twice. A mutex promises that it stays
// locked until unlock(); no lock across machines can keep that promise: the holder may be cut off
// or frozen, and the lock passes on. Code written for a mutex neither asks whether it still holds
// it nor sends the token along with its writes. Where that matters use Client::acquire(), check()
// and token(); lease() gives them here.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include "pawl/client.h"
#include "pawl/lease.h"

namespace pawl {

// To be used by one thread at a time, as any object that is not a std::mutex; each thread has its
// own, with the same client and name. Not recursive: lock() by a thread that locked it already
// throws.
class PAWL_PUBLIC Mutex {
 public:
  // options.wait is how long lock() waits before it asks again (0: a minute); in all it waits for
  // ever.
  Mutex(Client& client, std::string name,
        AcquireOptions options = {.wait = std::chrono::minutes(1)});

  // Throws std::system_error when pawld refuses or the client cannot be used; waits on while it
  // cannot be reached.
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

// One that the thread which locked it may lock again: as often as it is unlocked, under one lease
// and one token. A token of its own for the inner lock would fence out the outer one. Shared by the
// threads of a process, like a std::recursive_mutex: they exclude each other here, without asking
// pawld.
class PAWL_PUBLIC RecursiveMutex {
 public:
  RecursiveMutex(Client& client, std::string name,
                 AcquireOptions options = {.wait = std::chrono::minutes(1)});

  // As Mutex::lock(). Locked again, it throws std::system_error (owner_dead) when the lease has
  // been lost meanwhile: who unlocks all the way out may lock anew, with a new token.
  void lock();
  [[nodiscard]] bool try_lock();  // False also when locked again and lost.
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
