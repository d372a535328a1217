// The private state behind the public classes Client and Lease, which all of them share.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/driver.h"
#include "pawl/client.h"
#include "pawl/lease.h"

namespace pawl {

// How long a destructor waits for pawld: less than the promised second, since ending threads takes
// time too.
inline constexpr std::chrono::milliseconds kDestructorWait{900};

struct Client::State {
  // Empty when the addresses are wrong, or the process had no room for it.
  std::shared_ptr<client::Driver> driver;
  Error wrong;  // why it is empty
  std::chrono::milliseconds call_timeout;
  std::string owner;  // default of AcquireOptions::owner

  // Starts an acquire; `done` runs on the I/O thread.
  client::CallId acquire(std::vector<std::string> locks, AcquireOptions options,
                         client::ThreadNumber thread,
                         std::function<void(Result<Lease>)> done) const;
  // Why this client cannot be used at all; nullopt when it can.
  [[nodiscard]] std::optional<Error> unusable() const {
    if (!driver) return wrong;
    if (!driver->forked()) return std::nullopt;
    return Error{Code::kInvalid,
                 "this client belongs to the parent of this process (fork); create a new one"};
  }
};

struct Lease::State {
  std::shared_ptr<client::Driver> driver;
  client::KeptLease lease;
  std::shared_ptr<client::Holder> holder;
  // By the driver. Used by the owner's thread only, unlike the rest.
  bool forgotten = false;

  [[nodiscard]] client::LeaseStatus status() const;
};

}  // namespace pawl
