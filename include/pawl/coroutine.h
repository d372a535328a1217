// Acquiring in a coroutine of any kind:
//
//   pawl::Acquisition acquisition(client, {"reports/nightly"}, {.wait = 30s});
//   auto lease = co_await acquisition;
//   if (!lease) co_return report(lease.error());
//
// The coroutine continues on the client's callback thread, where it must not block; or where
// `resume_on`, the fourth argument, runs the function that it is given:
//
//   [&](auto resume) { asio::post(context, resume); }
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

// As Client::acquire_async(), whose restrictions apply. To be awaited once.
class Acquisition {
 public:
  Acquisition(Client& client, std::vector<std::string> locks, AcquireOptions options = {},
              Resumer resume_on = {})
      : client_(client),
        locks_(std::move(locks)),
        options_(std::move(options)),
        resume_on_(std::move(resume_on)) {}
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  struct Awaiter {
    Acquisition* acquisition;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) const { acquisition->start(waiting); }
    [[nodiscard]] Result<Lease> await_resume() const { return *std::move(acquisition->result_); }
  };
  Awaiter operator co_await() & noexcept { return {this}; }
  // Name it first: with g++ 12 a temporary in the co_await expression crashed.
  Awaiter operator co_await() && = delete;

 private:
  void start(std::coroutine_handle<> waiting) {
    // The coroutine may continue, and destroy this object, before acquire_async() returns.
    client_.acquire_async(std::move(locks_), std::move(options_),
                          [this, waiting](Result<Lease> lease) {
                            result_.emplace(std::move(lease));
                            const Resumer resume_on = std::move(resume_on_);
                            if (!resume_on) return waiting.resume();
                            resume_on([waiting] { waiting.resume(); });
                          });
  }

  Client& client_;
  std::vector<std::string> locks_;
  AcquireOptions options_;
  Resumer resume_on_;
  std::optional<Result<Lease>> result_;
};

}  // namespace pawl
