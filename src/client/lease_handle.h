// What is behind a public Lease. Shared by client_public.cc, which makes it, and lease_public.cc, which is it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/driver.h"
#include "pawl/lease.h"

namespace pawl {

struct Lease::State {
  std::shared_ptr<client::Driver> driver;
  client::Grant grant;
  std::vector<std::string> locks;
  std::shared_ptr<client::Signal> signal;

  [[nodiscard]] client::Standing look() const;
};

namespace client {

// One answer, from the I/O thread to the thread that waits for it.
template <class T>
class Answer {
 public:
  void set(Result<T> result) {
    {
      const std::lock_guard lock(mutex_);
      result_.emplace(std::move(result));
    }
    set_.notify_all();
  }
  Result<T> wait() {
    std::unique_lock lock(mutex_);
    set_.wait(lock, [this] { return result_.has_value(); });
    return *std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  std::optional<Result<T>> result_;
};

}  // namespace client
}  // namespace pawl
