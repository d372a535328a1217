// One TCP connection, for drivers: never blocks longer than it is told to.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "client/address.h"
#include "pawl/result.h"

namespace pawl::client {

class Socket {
 public:
  Socket() = default;
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Tries every address the host has, each for `timeout` at most. kUnavailable says why not.
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

  // Sends what fits and removes it from `bytes`; false when the connection is gone.
  bool send(std::string& bytes);
  // Waits until something can be read (or sent, if `wants_send`), `timeout` at most, and appends what was
  // read. False when the connection is gone; `why` says how.
  bool wait(std::string& received, bool wants_send, Nanos timeout, std::string& why);
  // Appends what can be read without waiting. False when the connection is gone; `why` says how.
  bool receive(std::string& received, std::string& why);

 private:
  int fd_ = -1;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace pawl::client
