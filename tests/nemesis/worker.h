// What one worker does, again and again, as a seed decides: asks for a lock in one of the ways
// there are, and while it holds writes to what the lock protects, thinking between its check and
// the write, as real programs do. Freezing it there produces a stale write.
// Now and then it writes once more after it knows that the lease is over: the guard must be the
// one that knows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "nemesis/event_log.h"
#include "nemesis/resource.h"
#include "pawl/client.h"

namespace pawl::nemesis {

struct Settings {
  std::string address, name, guard;
  std::string auth;     // user:secret
  std::string ca_file;  // For tls:// addresses.
  std::uint64_t seed = 1;
  int ttl_ms = 1'000;  // At most; each lease has its own.
};

// The locks of every world: taken exclusively or by readers, several at once, and one that two may
// hold.
inline const std::vector<std::string> kLocks{"alpha", "beta", "gamma"};
inline constexpr const char* kPool = "pool";
inline constexpr std::uint32_t kPoolSize = 2;

class Worker {
 public:
  Worker(const Settings& settings, EventLog& log);

  // One acquire and what comes of it.
  void turn();

 private:
  struct Wish {
    std::vector<std::string> locks;
    AcquireOptions options;
    bool fence = false;  // The guards are advanced before it works.
  };
  struct Held {
    std::uint64_t number;
    Lease& lease;
    std::vector<std::string> resources;
    std::int64_t deadline = 0;  // The last one that was written down.
    std::uint64_t op = 0;
  };

  [[nodiscard]] Wish wish();
  void announce(std::uint64_t number, const Wish& wish);
  void hold(Lease& lease, std::uint64_t number, const Wish& wish);
  // False: it is over, and that is written down.
  bool still_held(Held& held);
  void step(Held& held);
  void write_all_the_same(Held& held);
  void read(Held& held);
  void write(Held& held, const std::string& resource, bool unasked);
  void give_back(Held& held);
  void think(int at_most_ms);
  [[nodiscard]] bool chance(unsigned percent) { return dice_.below(100) < percent; }

  Settings settings_;
  EventLog& log_;
  SeededRandom dice_;
  Client client_;
  Resource resource_;
  std::uint64_t turns_ = 0;
};

// The same under `pawl run`: it has a token and knows nothing else. Writes until its work is done,
// or it is ended.
void work_under_run(const Settings& settings, EventLog& log);

}  // namespace pawl::nemesis
