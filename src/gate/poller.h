// Waits for sockets and deadlines, and calls whoever they belong to. One thread.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/boot_time.h"
#include "base/unique_fd.h"

namespace pawl::gate {

class Watched {
 public:
  virtual ~Watched() = default;
  virtual void on_events(std::uint32_t events) = 0;
  virtual void on_deadline() = 0;
};

class Poller {
 public:
  using Key = std::uint64_t;

  Poller();
  // `watched` is called until forget().
  Key add(Watched& watched);
  void forget(Key key);
  // Events as for epoll_ctl(); a negative descriptor: none. Call it before the descriptor that was
  // set is closed, or afterwards with another one.
  void set_events(Key key, int fd, std::uint32_t events);
  void set_deadline(Key key, std::optional<Instant> at);

  // Waits for the first event or deadline, but not longer than to `until`, and calls all that are
  // due.
  void turn(std::optional<Instant> until);
  // The time at which the current turn began.
  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Entry {
    Watched* watched = nullptr;
    int fd = -1;
    std::uint32_t events = 0;
    std::optional<Instant> deadline;
  };
  const UniqueFd epoll_;
  Key last_key_ = 0;
  std::unordered_map<Key, Entry> entries_;
  std::set<std::pair<Instant, Key>> deadlines_;
  Instant now_;
};

}  // namespace pawl::gate
