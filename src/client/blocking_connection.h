// A thin driver of Machine for programs that do one thing at a time, such as the CLI: one socket,
// one call at a time, on the caller's thread.
//
//   SystemRandom random;
//   BlockingConnection pawld(*parse_addresses("127.0.0.1:7295"), random, {});
//   auto held = pawld.acquire({.locks = {"hello"}, .wait = 30s});
//   if (!held) return report(held.error());
//
// It connects when the first call needs it, and again when the connection is lost. A call's
// `give_up`, when not set, is `call_timeout` from now (behind the wait, for an acquire).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/address.h"
#include "client/calls.h"
#include "client/machine.h"
#include "client/socket.h"

namespace pawl::client {

struct ConnectionOptions {
  MachineOptions machine;
  Millis connect_timeout{3'000};                 // per address
  Millis call_timeout{10'000};                   // how long a call may take beyond its own wait
  std::function<void(std::uint64_t)> on_queued;  // the place in the queue, whenever it changes
  // The connection was lost, or could not be made again, while a call goes on; for people.
  std::function<void(const std::string&)> on_trouble;
};

class BlockingConnection {
 public:
  BlockingConnection(std::vector<Address> addresses, Random& random, ConnectionOptions options);
  // Gives back what nobody waits for any more, for a second at most.
  ~BlockingConnection();
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;

  // Whether a pawld has ever answered: tells "unreachable" from "refused".
  [[nodiscard]] bool reached() const { return machine_.greeted(); }
  // Whether it was not reached because TLS does not fit on both ends: a person must look.
  [[nodiscard]] bool is_misfit() const { return misfits_ > 0 && !reached(); }

  Result<Held> acquire(AcquireCall call);
  Result<Renewal> renew(RenewCall call);
  Result<Release> release(ReleaseCall call);
  Result<wire::Value> command(CommandCall call);

 private:
  template <class T>
  Result<T> finish(CallId call);
  [[nodiscard]] Instant limit(Instant asked, Millis wait) const;
  // One step: connect if wanted, send, wait (not beyond `until`), read, let time pass.
  void turn(Instant until);
  void connect();
  void hang_up(const std::string& why);
  void exchange(Instant until);
  void report_position(CallId call);
  void report_trouble();

  const std::vector<Address> addresses_;
  const ConnectionOptions options_;
  Machine machine_;
  Socket socket_;
  std::string unsent_;
  std::size_t next_address_ = 0;
  std::size_t misfits_ = 0;     // addresses whose TLS does not fit, in a row
  std::uint64_t position_ = 0;  // as last reported
};

}  // namespace pawl::client
