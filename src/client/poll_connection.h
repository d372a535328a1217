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
// Only the name of a pawld that a standby has named is looked up later, in the background.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "client/lookup.h"
#include "client/machine.h"
#include "client/socket.h"

namespace pawl::client {

class PollConnection {
 public:
  // Endpoints with the same name are those of one pawld. `connect_timeout` is per endpoint.
  PollConnection(std::vector<Endpoint> endpoints, Random& random, MachineOptions options,
                 Millis connect_timeout);

  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  // What to poll for; a negative descriptor when there is nothing.
  [[nodiscard]] pollfd interest() const {
    if (lookup_.busy()) return {lookup_.fd(), POLLIN, 0};
    return socket_.interest(!unsent_.empty());
  }
  [[nodiscard]] Instant next_timer() const;
  // Receives, runs timers, connects and sends. `revents` as poll() answered.
  void process(short revents);
  // For a program that waits for nothing else: sleeps until there is something to do, `until` at
  // the latest, then processes it.
  void wait_and_process(Instant until = kNever);
  // Sends what calls have added since the last process().
  void flush();
  // From now on calls do not fail because no pawld can be reached: something is held.
  void keep_retrying() { keep_retrying_ = true; }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  // No pawld was reached because TLS does not match on both ends: the configuration is wrong.
  [[nodiscard]] bool is_tls_mismatch() const { return tls_mismatches_ > 0 && !machine_.reached(); }

 private:
  // The endpoints of one pawld.
  struct Target {
    std::string name;
    std::vector<Endpoint> endpoints;
  };

  [[nodiscard]] bool is_busy() const { return socket_.is_connecting() || lookup_.busy(); }
  [[nodiscard]] std::size_t endpoints() const;
  void connect_to_node();
  void on_looked_up(Result<std::vector<Endpoint>> endpoints);
  void start_connect();
  void on_connect_progress(Socket::Progress progress);
  void on_connect_failed();
  void on_node_failed(const std::string& why);
  void receive();
  void hang_up(const std::string& why);

  const Millis connect_timeout_;
  std::vector<Target> targets_;  // the configured ones, then those that were looked up since
  const std::size_t configured_;
  Machine machine_;
  Socket socket_;
  Lookup lookup_;
  Instant connect_limit_ = kNever;
  std::string unsent_;
  std::size_t target_ = 0;          // in use, or being connected to
  std::size_t endpoint_ = 0;        // of that
  bool any_answered_ = false;       // in this round
  std::size_t tls_mismatches_ = 0;  // endpoints in a row
  bool keep_retrying_ = false;
  std::string errors_;  // of this round
};

}  // namespace pawl::client
