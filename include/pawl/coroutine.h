// Acquiring in a coroutine of any kind:
//
//   auto lease = co_await pawl::acquired(client, "reports/nightly", {.wait = 30s});
//   if (!lease) co_return report(lease.error());
//
// The coroutine continues on the client's callback thread, where it must not block; or where
// `resume_on` runs the function it is given:
//
//   co_await pawl::acquired(client, locks, {}, [&](auto resume) { asio::post(context, resume); });
#pragma once

#include <coroutine>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/client.h"

namespace pawl {

// Runs the function that it is given, once, on a thread of its choice.
using Resumer = std::function<void(std::function<void()>)>;

// Of acquired(); to be awaited once.
class AcquireAwaiter {
 public:
  AcquireAwaiter(Client& client, std::vector<std::string> locks, AcquireOptions options,
                 Resumer resume_on)
      : client_(client),
        locks_(std::move(locks)),
        options_(std::move(options)),
        resume_on_(std::move(resume_on)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    // The coroutine may continue, and destroy this object, before acquire_async() returns.
    client_.acquire_async(std::move(locks_), std::move(options_),
                          [this, waiting](Result<Lease> lease) {
                            result_.emplace(std::move(lease));
                            const Resumer resume_on = std::move(resume_on_);
                            if (!resume_on) return waiting.resume();
                            resume_on([waiting] { waiting.resume(); });
                          });
  }
  [[nodiscard]] Result<Lease> await_resume() { return *std::move(result_); }

 private:
  Client& client_;
  std::vector<std::string> locks_;
  AcquireOptions options_;
  Resumer resume_on_;
  std::optional<Result<Lease>> result_;
};

// As Client::acquire_async(), whose restrictions apply. Several locks: all or none. (g++ 12 does not
// compile a list of them in braces inside of co_await; name the vector.)
[[nodiscard]] inline AcquireAwaiter acquired(Client& client, std::vector<std::string> locks,
                                             AcquireOptions options = {}, Resumer resume_on = {}) {
  return {client, std::move(locks), std::move(options), std::move(resume_on)};
}
[[nodiscard]] inline AcquireAwaiter acquired(Client& client, std::string lock,
                                             AcquireOptions options = {}, Resumer resume_on = {}) {
  std::vector<std::string> locks;
  locks.push_back(std::move(lock));
  return {client, std::move(locks), std::move(options), std::move(resume_on)};
}

}  // namespace pawl
