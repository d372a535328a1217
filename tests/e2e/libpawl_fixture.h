// What the tests of libpawl share: a pawld of their own, and a record of the states of a lease.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/blocking_connection.h"
#include "e2e/pawld_process.h"
#include "pawl/pawl.h"

namespace pawl {

// The states a lease went through, as reported to its holder.
class StateRecord {
 public:
  auto listener() {
    return [this](LeaseState state, const std::string& reason) {
      const std::lock_guard lock(mutex_);
      states_.push_back(state);
      reasons_.push_back(reason);
    };
  }
  bool has(LeaseState state) {
    const std::lock_guard lock(mutex_);
    return std::find(states_.begin(), states_.end(), state) != states_.end();
  }
  std::vector<LeaseState> states() {
    const std::lock_guard lock(mutex_);
    return states_;
  }

 private:
  std::mutex mutex_;
  std::vector<LeaseState> states_;
  std::vector<std::string> reasons_;
};

class LibPawl : public testing::Test {
 protected:
  Lease take(Client& client, const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }
  // Waits until the lease was renewed that many times more.
  static bool renewed(const Lease& lease, int times) {
    auto deadline = lease.deadline_boottime();
    return eventually([&] {
             if (const auto now = lease.deadline_boottime(); now > deadline) {
               deadline = now;
               --times;
             }
             return times <= 0 || lease.state() == LeaseState::kLost;
           }) &&
           lease.state() < LeaseState::kUncertain;
  }

  // A number in pawld's answer to STATUS; -1 when there is no answer.
  std::int64_t status(const std::string& field) {
    SystemRandom random;
    client::BlockingConnection connection(*client::parse_addresses(pawld.address()), random, {});
    const auto status = connection.command({.words = {"STATUS"}});
    const wire::Value* found = status ? status->find(field) : nullptr;
    return found != nullptr ? found->as_integer().value_or(-1) : -1;
  }

  PawldProcess pawld;
};

}  // namespace pawl
