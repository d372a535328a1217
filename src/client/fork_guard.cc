#include "client/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace pawl::client {
namespace {

// Global, because fork() is. Not getpid(): in a PID namespace of its own a child may have the
// parent's pid.
std::atomic<std::uint64_t> forks{0};
std::once_flag registered;

}  // namespace

ForkGuard::ForkGuard() {
  std::call_once(registered, [] { pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); }); });
  generation_ = forks.load();
}

bool ForkGuard::forked() const {
  return forks.load(std::memory_order_relaxed) != generation_;
}

}  // namespace pawl::client
