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
  std::string ca_file = {};    // Verifies pawld's certificate. Empty: the system's CAs.
  std::string cert_file = {};  // Our certificate, if pawld asks for one; with key_file or without.
  std::string key_file = {};
  // The name in pawld's certificate. Empty: the host in the address. The same for all addresses.
  std::string server_name = {};
};

struct ClientOptions {
  std::string name = "libpawl";  // shown by CLIENT LIST
  Auth auth = {};  // sent on each connection; if pawld refuses it, calls end with kDenied
  std::chrono::milliseconds connect_timeout{1'000};  // per address
  // A connection whose answer is overdue this long is replaced by a new one. 0: after 4 s, or a
  // sixth of the shortest TTL held if that is less (at least 100 ms), so that leases survive a
  // silent connection. Waits of the old connection are queued again: while there are any, it is
  // replaced earlier than after 4 s only once pawld answers on the new one.
  std::chrono::milliseconds answer_timeout{0};
  // How long acquire() may take beyond its wait, e.g. while pawld cannot be reached.
  std::chrono::milliseconds call_timeout{5'000};
  TlsOptions tls = {};
  // Hooks; called on the client's callback thread, must not throw. Nothing is printed by default.
  // While a callback is stuck and 10,000 are queued, lines and counts are dropped. None begins
  // after ~Client has returned.
  std::function<void(std::string_view line)> log = {};
  // The state of the connection has changed; the text says why. Never dropped.
  std::function<void(ConnectionState, const std::string& reason)> on_connection = {};
  // A counter was increased: acquires, acquire_failures, renewals, renewal_commands,
  // renewal_failures, leases_lost, connects, disconnects.
  std::function<void(std::string_view counter, double added)> metric = {};
};

// All members may be called from any thread. Has three threads of its own (I/O, callbacks, and one
// for lost()), and one more while it connects. They handle no signals, and a process that a callback
// starts inherits that. When the process has no thread or file descriptor left for it, calls fail
// (kInvalid); later, connecting fails. Belongs to the process that created it: in a child of fork()
// calls fail and the destructor does nothing.
class PAWL_PUBLIC Client {
 public:
  // "host:port[,host:port…]", tried in turn, or "tls://host:port[,tls://…]". Connects when first
  // needed, and again when the connection is lost. One that stands by names the active one, and the
  // client goes there. The first acquire() reports an error in the list or in the TLS files.
  explicit Client(std::string_view addresses, ClientOptions options = {});
  // Cancels waits, also of other threads, and releases every lease, within one second.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits up to options.wait, and up to call_timeout for the network. milliseconds::max() is for
  // ever; after an hour in the queue it goes to the end of it. A lock that this client holds
  // is not granted again: a second, greater token would fence out the first. When `stop` is
  // requested it returns kUnavailable. Errors:
  //   kBusy         the lock is held; the detail says so if by this client
  //   kInvalid      the request is wrong, or would wait for itself (AcquireOptions::wait_for_own)
  //   kUnavailable  nothing happened
  //   kUnknown      it may have been granted; then it is released in the background
  [[nodiscard]] Result<Lease> acquire(std::string_view lock, AcquireOptions options = {},
                                      std::stop_token stop = {});
  // Up to 16 locks, all or none, under one token.
  [[nodiscard]] Result<Lease> acquire_all(std::vector<std::string> locks,
                                          AcquireOptions options = {}, std::stop_token stop = {});
  // Returns at once; `done` runs exactly once, on the callback thread, also when the client is
  // destroyed meanwhile. If the client cannot be used at all (wrong addresses, or after fork), `done`
  // runs before this returns.
  void acquire_async(std::vector<std::string> locks, AcquireOptions options,
                     std::function<void(Result<Lease>)> done);

 private:
  friend struct client::TestAccess;  // For pawl::testing::Server.
  Client(std::string_view addresses, ClientOptions options, std::shared_ptr<client::TestTime> time);
  friend class Election;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pawl
