#include "testing/test_clocks.h"

#include <algorithm>

namespace pawl::testing {

void ClientTestClock::add_client(std::weak_ptr<client::TestClient> subject) {
  const std::lock_guard lock(mutex_);
  clients_.push_back(std::move(subject));
}

std::vector<std::shared_ptr<client::TestClient>> ClientTestClock::clients() {
  const std::lock_guard lock(mutex_);
  std::erase_if(clients_, [](const auto& subject) { return subject.expired(); });
  std::vector<std::shared_ptr<client::TestClient>> alive;
  for (const auto& subject : clients_) {
    if (auto still = subject.lock()) alive.push_back(std::move(still));
  }
  return alive;
}

server::ClockReading ServerTestClock::read() {
  server::ClockReading reading = frozen_ ? *frozen_ : real_.read();
  reading.monotonic += offset_;
  reading.wall.value += static_cast<std::uint64_t>(std::chrono::floor<Millis>(offset_).count());
  return reading;
}

}  // namespace pawl::testing
