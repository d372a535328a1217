#include "testing/moved_time.h"

#include <algorithm>

namespace pawl::testing {

void MovedTime::enroll(std::weak_ptr<client::TestSubject> subject) {
  const std::lock_guard lock(mutex_);
  subjects_.push_back(std::move(subject));
}

std::vector<std::shared_ptr<client::TestSubject>> MovedTime::subjects() {
  const std::lock_guard lock(mutex_);
  std::erase_if(subjects_, [](const auto& subject) { return subject.expired(); });
  std::vector<std::shared_ptr<client::TestSubject>> alive;
  for (const auto& subject : subjects_) {
    if (auto still = subject.lock()) alive.push_back(std::move(still));
  }
  return alive;
}

server::ClockReading MovedClock::read() {
  server::ClockReading reading = frozen_ ? *frozen_ : real_.read();
  reading.monotonic += moved_;
  reading.wall.value += static_cast<std::uint64_t>(std::chrono::floor<Millis>(moved_).count());
  return reading;
}

}  // namespace pawl::testing
