// A thin driver of Machine for a program with a poll loop of its own, such as `pawl run`: never
// blocks, not even to connect.
//
//   const auto endpoints = resolve(addresses);              // blocks, once, before anything is held
//   PollConnection pawld(*endpoints, random, {});
//   loop:  pollfd socket = pawld.interest();  …poll until pawld.next_timer()…  pawld.turn(socket.revents);
//          for (Completion& done : pawld.machine().take_completions()) …
//
// Names are resolved once: a resolver that hangs must not stand between a holder and its deadline.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/unique_fd.h"
#include "client/address.h"
#include "client/machine.h"
#include "tls/stream.h"

namespace pawl::client {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string name;                               // for people
  std::string host;                               // what its certificate is to be for
  std::shared_ptr<const tls::ClientContext> tls;  // nullptr: plain
};
// Every address of every host. kUnavailable when not one was found.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const std::vector<Address>& addresses);

class PollConnection {
 public:
  PollConnection(std::vector<Endpoint> endpoints, Random& random, MachineOptions options,
                 Millis connect_timeout);

  [[nodiscard]] Machine& machine() { return machine_; }
  // What to poll for; a negative descriptor when there is nothing.
  [[nodiscard]] pollfd interest() const;
  [[nodiscard]] Instant next_timer() const;
  // Reads, lets time pass, connects, sends. `revents` as poll answered.
  void turn(short revents);
  // For a program that waits for nothing else: sleeps until there is something to do, then takes a
  // turn.
  void wait_and_turn();
  // Sends what calls made since the last turn want to send.
  void flush();
  // From now on a round of vain attempts is no reason to give a call up: something is held.
  void be_patient() { patient_ = true; }
  // Whether no pawld has answered because TLS does not fit on both ends: a person must look.
  [[nodiscard]] bool is_misfit() const { return misfits_ > 0 && !machine_.greeted(); }

 private:
  void begin_connect();
  void end_connect();
  void begin_handshake();
  void shake_hands();
  void established();
  void connect_failed(const std::string& why);
  void read();
  void decrypt(std::string_view bytes);
  std::size_t to_socket(std::string_view bytes);
  void hang_up(const std::string& why);

  const std::vector<Endpoint> endpoints_;
  const Millis connect_timeout_;
  Machine machine_;
  UniqueFd socket_;
  std::unique_ptr<tls::Stream> stream_;  // nullptr: plain, or not there yet
  bool connecting_ = false;              // or shaking hands
  int lost_ = 0;                         // why nobody is there to send to
  Instant connect_limit_ = kNever;
  std::string unsent_;
  std::size_t at_ = 0;       // the endpoint in use
  std::size_t tried_ = 0;    // in vain, in this round
  std::size_t misfits_ = 0;  // endpoints whose TLS does not fit, in a row
  bool patient_ = false;
  std::string why_;  // of this round
};

}  // namespace pawl::client
