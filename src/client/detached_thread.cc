#include "client/detached_thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace pawl::client {
namespace {

// A new thread inherits the mask of the thread that starts it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<void> start_detached(std::function<void()> work) {
  const SignalsBlocked while_starting;
  try {
    std::thread(std::move(work)).detach();
    return {};
  } catch (const std::system_error& error) {
    return Error{Code::kUnavailable, "cannot start a thread: " + error.code().message()};
  }
}

}  // namespace pawl::client
