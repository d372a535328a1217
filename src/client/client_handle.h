// What is behind a public Client. Shared by the public classes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/driver.h"
#include "pawl/client.h"

namespace pawl {

// How long a destructor waits for pawld: below the second that is promised, since ending takes time
// too.
inline constexpr std::chrono::milliseconds kDestructorWait{900};

// Whether the same call may succeed later.
[[nodiscard]] inline bool retry_may_help(Code code) {
  return code == Code::kBusy || code == Code::kUnavailable || code == Code::kUnknown;
}

struct Client::State {
  std::shared_ptr<client::Driver> driver;  // Empty when the addresses are wrong.
  Error wrong;
  std::chrono::milliseconds call_timeout;
  std::string owner;  // of leases that name none

  // How every acquire is begun; `done` runs on the I/O thread.
  client::CallId acquire(std::vector<std::string> locks, AcquireOptions options,
                         client::ThreadNumber thread,
                         std::function<void(Result<Lease>)> done) const;
  // Why nothing can be asked at all.
  [[nodiscard]] std::optional<Error> trouble() const {
    if (!driver) return wrong;
    if (!driver->forked()) return std::nullopt;
    return Error{Code::kInvalid,
                 "this client belongs to the parent of this process (fork); make another"};
  }
};

}  // namespace pawl
