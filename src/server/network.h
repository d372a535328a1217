// The seam between the engine and whatever carries bytes: sockets in pawld, a simulated network in
// tests.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/types.h"

namespace pawl::server {

// Chosen by the driver; never used twice in one run.
using ConnectionId = Number<struct ConnectionTag>;

// What the engine asks of its driver. None of these may call back into the engine.
class Network {
 public:
  virtual ~Network() = default;
  // Takes as many bytes from the front as it can right now and returns how many. After fewer than
  // all, the driver calls Engine::writable() when there is room again. A connection that is broken
  // swallows everything.
  virtual std::size_t send(ConnectionId connection, std::string_view bytes) = 0;
  // Whether more input of this connection is welcome. When not, the driver stops reading it, but
  // still notices its hang-up.
  virtual void want_input(ConnectionId connection, bool wanted) = 0;
  // The engine is done with it. Bytes it took must still be delivered; no more calls about it
  // follow, either way.
  virtual void close(ConnectionId connection) = 0;
};

}  // namespace pawl::server
