// One TCP connection, plain or under TLS, for drivers: never blocks longer than it is told to.
//
// One thread may receive while another sends; under TLS both take turns, for work in memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/types.h"
#include "client/address.h"
#include "client/time.h"
#include "pawl/result.h"

namespace pawl::client {

// The system's text for an errno value; strerror() is not safe in threads.
[[nodiscard]] inline std::string error_text(int error) {
  return std::generic_category().message(error);
}

class Socket {
 public:
  Socket();
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Tries every address the host has, each for `timeout` at most, the TLS handshake included.
  // kUnavailable says why not; kInvalid when certificates do not fit, or one end does not speak
  // TLS: trying again will not help.
  Result<void> connect(const Address& address, Millis timeout);
  void close();
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  // For drivers that wait for more than this one.
  [[nodiscard]] int fd() const { return fd_; }

  // Of this end; 0 when it cannot be told.
  [[nodiscard]] std::uint16_t local_port() const;
  // Bytes, on this connection. Any thread.
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  // Under TLS: it was lost because certificates do not fit. (A server may refuse ours only after
  // connect().)
  [[nodiscard]] bool is_misfit() const;

  // Sends what fits and removes it from `bytes`; false when the connection is gone.
  bool send(std::string& bytes);
  // Waits until something can be read (or sent, if `wants_send`), `timeout` at most, and appends
  // what was read. False when the connection is gone; `why` says how.
  bool wait(std::string& received, bool wants_send, Nanos timeout, std::string& why);
  // Appends what can be read without waiting. False when the connection is gone; `why` says how.
  bool receive(std::string& received, std::string& why);

 private:
  struct Secure;
  Result<void> shake_hands(const Address& address, Instant until);
  bool decrypt(std::string_view bytes, std::string& received, std::string& why);
  // Takes what the socket has room for; sets `lost` when nobody is there.
  std::size_t to_socket(std::string_view bytes, bool& lost);

  int fd_ = -1;
  std::unique_ptr<Secure> secure_;  // nullptr: plain
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace pawl::client
