// A Pawl inside a test: the real pawld in memory, on a port of its own, with a clock that the test
// moves.
//
//   pawl::testing::Server server;
//   pawl::Client client = server.client();
//   auto lease = client.acquire("reports/nightly", {.ttl = 15s});
//   server.advance(20s);                                    // as if this process had been frozen for 20 s
//   assert(lease->state() == pawl::LeaseState::kLost);      // and pawld has passed the lock on
//
// Link Pawl::testing. For tests only: nothing is stored, and whoever reaches the port may do
// everything.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/client.h"
#include "pawl/types.h"

namespace pawl::testing {

// Who holds a lock, as pawld sees it.
struct Holder {
  std::uint64_t token = 0;
  std::string owner;
  bool operator==(const Holder&) const = default;
};

// All members may be called from any thread, also from callbacks of its clients. Any number of
// servers may exist in a process, which they belong to: not to be used after fork(). Server,
// clients and leases may end in any order.
class PAWL_PUBLIC Server {
 public:
  // Throws std::runtime_error when no port can be had.
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:port", for anything that speaks to pawld. What does not come from client() lives by
  // the real clock.
  [[nodiscard]] std::string address() const;
  // A client of this server that lives by its clock.
  [[nodiscard]] Client client(ClientOptions options = {});

  // --- Time. It also runs by itself, as the real one does; these move it ahead -------------------
  // When either returns, everything that is due has happened: pawld has expired and handed on,
  // clients have renewed what they still could and been answered, and callbacks (lost(), on_change)
  // have run. A callback that takes longer than a second is not waited for. Time never goes back:
  // less than nothing moves nothing.

  // The whole time at once: pawld lives through it, the clients do not. They are as a process that
  // was frozen (SIGSTOP, suspend, a long pause) and wakes. A lease shorter than this is lost.
  void advance(std::chrono::nanoseconds time);
  // The same time in small steps: clients renew as they would in life.
  void run_for(std::chrono::nanoseconds time);

  // --- Faults ------------------------------------------------------------------------------------
  // As a network that is cut: pawld runs on, but hears nothing and is not heard, also on new
  // connections.
  void stop_answering();
  // The network is mended. What was sent meanwhile is lost, and with it the connections that it was
  // sent on.
  void answer_again();
  // Every connection breaks, once; clients connect again.
  void drop_connections();
  // pawld does the next thing it is asked to do, and the connection breaks before the answer
  // arrives. (Greetings of new connections do not count.)
  void lose_next_reply();
  // As kill -9 and a new start: connections break, waits are forgotten, each lease has its full TTL
  // again.
  void restart();

  // --- What an operator does ---------------------------------------------------------------------
  // Its holders are refused their next renewal; the lock passes on when they have run out. False:
  // nobody holds it.
  bool break_lock(std::string_view lock);
  // The lock passes on at once, whatever its holders believe. Only a resource that compares tokens
  // is safe from them.
  bool break_lock_now(std::string_view lock);

  // --- Looking -----------------------------------------------------------------------------------
  // Empty: nobody. More than one: shared, or with a limit.
  [[nodiscard]] std::vector<Holder> holders(std::string_view lock) const;
  // How many wait for it.
  [[nodiscard]] std::size_t waiters(std::string_view lock) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl::testing
