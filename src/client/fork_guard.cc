#include "client/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace pawl::client {
namespace {

// One per process by nature. Not getpid(): in a namespace of its own the child may have the
// parent's number.
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
