#include "gate/poller.h"

#include <array>
#include <cerrno>

#include "base/assert.h"
#include "base/boot_clock.h"

namespace pawl::gate {

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), now_(boot_now()) {
  PAWL_ASSERT(epoll_);
}

Poller::Key Poller::add(Watched& watched) {
  entries_[++last_key_].watched = &watched;
  return last_key_;
}

void Poller::forget(Key key) {
  set_events(key, -1, 0);
  set_deadline(key, std::nullopt);
  entries_.erase(key);
}

void Poller::set_events(Key key, int fd, std::uint32_t events) {
  Entry& entry = entries_.at(key);
  if (fd == entry.fd && (fd < 0 || events == entry.events)) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (fd == entry.fd) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  } else {
    // Fails if it is closed, and then it is not watched either.
    if (entry.fd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.fd, nullptr);
    if (fd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  entry.fd = fd;
  entry.events = events;
}

void Poller::set_deadline(Key key, std::optional<Instant> at) {
  Entry& entry = entries_.at(key);
  if (entry.deadline == at) return;
  if (entry.deadline) deadlines_.erase({*entry.deadline, key});
  if (at) deadlines_.insert({*at, key});
  entry.deadline = at;
}

void Poller::turn(std::optional<Instant> until) {
  if (!deadlines_.empty() && (!until || deadlines_.begin()->first < *until))
    until = deadlines_.begin()->first;
  std::array<epoll_event, 256> ready;
  const int timeout = until ? poll_timeout(*until - boot_now()) : -1;
  const int count =
      ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout);
  PAWL_ASSERT(count >= 0 || errno == EINTR);
  now_ = boot_now();
  for (int i = 0; i < count; ++i) {
    const auto& event = ready[static_cast<std::size_t>(i)];
    // Another one of this turn may have ended it.
    const auto found = entries_.find(event.data.u64);
    if (found != entries_.end()) found->second.watched->on_events(event.events);
  }
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_) {
    const Key key = deadlines_.begin()->second;
    set_deadline(key, std::nullopt);
    entries_.at(key).watched->on_deadline();
  }
}

}  // namespace pawl::gate
