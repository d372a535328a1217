// Drives a Machine for a program with its own poll loop, such as `pawl run`. Never blocks, not even
// to connect.
//
//   const auto endpoints = resolve(addresses);  // blocks, once, before anything is held
//   PollConnection pawld(*endpoints, random, {}, 3s);
//   for (;;) {
//     pollfd socket = pawld.interest();
//     poll(&socket, 1, poll_timeout(pawld.next_timer() - boot_now()));
//     pawld.process(socket.revents);
//     for (Completion& done : pawld.machine().take_completions()) handle(done);
//     pawld.flush();
//   }
//
// Names are looked up once, before: a resolver that hangs must not keep a holder from its deadline.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "client/machine.h"
#include "client/socket.h"

namespace pawl::client {

class PollConnection {
 public:
  // `connect_timeout` is per endpoint.
  PollConnection(std::vector<Endpoint> endpoints, Random& random, MachineOptions options,
                 Millis connect_timeout);

  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  // What to poll for; a negative descriptor when there is nothing.
  [[nodiscard]] pollfd interest() const { return socket_.interest(!unsent_.empty()); }
  [[nodiscard]] Instant next_timer() const;
  // Receives, runs timers, connects and sends. `revents` as poll() answered.
  void process(short revents);
  // For a program that waits for nothing else: sleeps until there is something to do, `until` at
  // the latest, then processes it.
  void wait_and_process(Instant until = kNever);
  // Sends what calls have added since the last process().
  void flush();
  // From now on calls do not fail because all endpoints failed: something is held.
  void keep_retrying() { keep_retrying_ = true; }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  // No pawld was reached because TLS does not match on both ends: the configuration is wrong.
  [[nodiscard]] bool is_tls_mismatch() const { return tls_mismatches_ > 0 && !machine_.reached(); }

 private:
  void start_connect();
  void on_connect_progress(Socket::Progress progress);
  void on_connect_failed();
  void receive();
  void hang_up(const std::string& why);

  const std::vector<Endpoint> endpoints_;
  const Millis connect_timeout_;
  Machine machine_;
  Socket socket_;
  Instant connect_limit_ = kNever;
  std::string unsent_;
  std::size_t current_ = 0;         // the endpoint in use, or the next to try
  std::size_t failed_ = 0;          // endpoints, in this round
  std::size_t tls_mismatches_ = 0;  // endpoints in a row
  bool keep_retrying_ = false;
  std::string errors_;  // of this round
};

}  // namespace pawl::client
