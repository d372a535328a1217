// The client: one connection, shared by any number of threads and leases.
//
//   pawl::Client client("127.0.0.1:7295");
//   auto lease = client.acquire("reports/nightly", {.ttl = 15s, .wait = 30s});
//   if (!lease) return report(lease.error());          // the code says what may be concluded
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/lease.h"
#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl {

namespace client {
class TestTime;
struct TestAccess;
}  // namespace client

// How to speak TLS to addresses that are written tls://host:port. All are PEM files.
struct TlsOptions {
  std::string ca_file = {};    // Whom to believe who pawld is. Empty: those that the system trusts.
  std::string cert_file = {};  // Who we are, where pawld asks for it; both or neither.
  std::string key_file = {};
  // What pawld's certificate must be for. Empty: the host in the address.
  std::string server_name = {};
};

struct ClientOptions {
  std::string name = "libpawl";  // shown by CLIENT LIST
  Auth auth = {};  // sent on each connection; calls of one who is not let in end with kDenied
  std::chrono::milliseconds connect_timeout{1'000};  // per address
  // A connection that owes an answer for so long is given up for a new one. 0: after 4 s, or a
  // sixth of the shortest TTL held if that is less (100 ms at least): then leases survive a
  // connection that went silent. Waits that the old connection carried queue anew.
  std::chrono::milliseconds answer_timeout{0};
  // How long acquire() may take beyond its wait, e.g. while pawld cannot be reached.
  std::chrono::milliseconds call_timeout{5'000};
  TlsOptions tls = {};
  // Hooks; on the client's callback thread, must not throw. Nothing is printed by default. While a
  // callback is stuck and 10,000 wait behind it, lines and counts are dropped.
  std::function<void(std::string_view line)> log = {};
  // So much was added to a counter: acquires, acquire_failures, renewals, renewal_commands,
  // renewal_failures, leases_lost, connects, disconnects.
  std::function<void(std::string_view counter, double added)> metric = {};
};

// All members may be called from any thread. Uses two threads of its own (I/O and callbacks), and a
// third while it connects. Belongs to the process that made it: in a child of fork() calls fail and
// the destructor does nothing.
class PAWL_PUBLIC Client {
 public:
  // "host:port[,host:port…]", tried in turn, or "tls://host:port[,tls://…]"; connects when first
  // needed, and again when the connection is lost. What is wrong with the list, or with the files
  // for TLS, the first acquire() says.
  explicit Client(std::string_view addresses, ClientOptions options = {});
  // Cancels waits and releases every lease, for a second at most in all.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits up to options.wait, and up to call_timeout for the network. kBusy: someone else holds it;
  // the detail says so when that is this very client. kInvalid: also when it would wait for itself
  // (AcquireOptions::wait_for_own). A second grant is never the answer to a second acquire: its
  // greater token would fence out the first. kUnavailable: nothing happened. kUnknown: it may have
  // been granted, and is then given back in the background. When `stop` is requested it gives up
  // with kUnavailable.
  [[nodiscard]] Result<Lease> acquire(std::string_view lock, AcquireOptions options = {},
                                      std::stop_token stop = {});
  // Up to 16 locks, all or none, under one token.
  [[nodiscard]] Result<Lease> acquire_all(std::vector<std::string> locks,
                                          AcquireOptions options = {}, std::stop_token stop = {});
  // Returns at once; `done` runs once, on the callback thread. A client that cannot be used at all
  // (its addresses are wrong, or after fork) calls it before it returns.
  void acquire_async(std::vector<std::string> locks, AcquireOptions options,
                     std::function<void(Result<Lease>)> done);

 private:
  friend struct client::TestAccess;  // pawl::testing::Server makes clients that live by its clock.
  Client(std::string_view addresses, ClientOptions options, std::shared_ptr<client::TestTime> time);
  friend class Election;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl
