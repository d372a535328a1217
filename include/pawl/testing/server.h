// A Pawl inside a test: the real pawld in memory, on a port of its own, with a clock that the test
// moves.
//
//   pawl::testing::Server server;
//   pawl::Client client = server.client();
//   auto lease = client.acquire("reports/nightly", {.ttl = 15s});
//   server.advance(20s);  // as if this process had been frozen for 20 s
//   assert(lease->state() == pawl::LeaseState::kLost);
//
// Link Pawl::testing. For tests only: nothing is stored, and every client of the port may do
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

// A holder of a lock, according to pawld.
struct Holder {
  std::uint64_t token = 0;
  std::string owner;
  bool operator==(const Holder&) const = default;
};

// All members may be called from any thread, also from callbacks of its clients. A process may have
// any number of servers; they must not be used after fork(). Server, clients and leases may be
// destroyed in any order.
class PAWL_PUBLIC Server {
 public:
  // Throws std::runtime_error when no port is available.
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:port", for any client of pawld. Clients that were not made by client() use the real
  // clock.
  [[nodiscard]] std::string address() const;
  // A client of this server that uses its clock.
  [[nodiscard]] Client client(ClientOptions options = {});

  // --- Time. The clock also runs by itself, like the real one; these move it ahead ---------------
  // When they return, everything that is due has happened: pawld has expired leases and granted
  // locks again, clients have renewed what they still could, and callbacks (lost(), on_change) have
  // run. A callback that takes longer than a second is not waited for. A negative time moves
  // nothing.

  // Moves pawld's clock steadily and the clients' clock at once, as for a process that was frozen
  // (SIGSTOP, suspend, a long pause) and wakes. A lease with a shorter TTL is lost.
  void advance(std::chrono::nanoseconds time);
  // Moves both clocks in small steps: clients renew as usual.
  void run_for(std::chrono::nanoseconds time);

  // --- Faults ------------------------------------------------------------------------------------
  // Like a network failure: pawld runs on, but no byte arrives in either direction, also on new
  // connections.
  void stop_answering();
  // The network works again. Bytes that were sent meanwhile are lost, and their connections break.
  void answer_again();
  // All connections break once; clients connect again.
  void drop_connections();
  // pawld carries out the next command, and the connection breaks before the reply arrives. (HELLO
  // does not count.)
  void lose_next_reply();
  // Like kill -9 and a new start: connections break, waits are forgotten, each lease has its full
  // TTL again.
  void restart();

  // --- Operator actions --------------------------------------------------------------------------
  // The holders' next renewal is refused; the lock is granted again when their leases have expired.
  // False: the lock is not held.
  bool break_lock(std::string_view lock);
  // The lock can be granted again at once, while its holders still believe that they hold it. Only
  // a resource that compares tokens is protected from them.
  bool break_lock_now(std::string_view lock);

  // As `pawl ask` by `by`: the holders hear of it with their next renewal (see run_for() and
  // Lease::on_release_wanted()). False: the lock is not held.
  bool ask_for(std::string_view lock, std::string_view by, std::string_view reason);

  // --- State -------------------------------------------------------------------------------------
  // Empty: not held. More than one: shared, or with a limit.
  [[nodiscard]] std::vector<Holder> holders(std::string_view lock) const;
  // The number of waiting requests.
  [[nodiscard]] std::size_t waiters(std::string_view lock) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl::testing
