// The waits that connections have in the core: which connection a WaiterId belongs to, and how its
// end is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "server/network.h"

namespace pawl::server {

struct Wait {
  WaiterId id;
  ConnectionId connection;
  bool async = false;
  bool queued = false;  // async: the command is answered, its end will be a push
  // The order of joining the queues; a retry that takes over a wait inherits it.
  std::uint64_t arrival = 0;
  std::string request;                 // async only
  std::uint32_t next = 0, before = 0;  // the other waits of the connection, as slots + 1; 0 = none
};

// Slots are used again, so a steady state allocates nothing. A WaiterId carries the slot's
// generation: one that is over is never mistaken for its successor.
class WaitTable {
 public:
  // `chain` is the connection's list; it holds the newest wait's slot + 1.
  Wait& add(ConnectionId connection, std::uint32_t& chain);
  [[nodiscard]] Wait* find(WaiterId id);
  // The wait at a link of a chain (not 0).
  [[nodiscard]] Wait& at(std::uint32_t link) { return slots_[link - 1]; }
  void remove(Wait& wait, std::uint32_t& chain);
  [[nodiscard]] std::size_t size() const { return slots_.size() - free_.size(); }

 private:
  std::vector<Wait> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace pawl::server
