// One TCP connection, plain or under TLS. Connects without blocking (start, continue_connect), or
// blocks up to a time limit (connect). Sending and receiving never block.
//
// One thread may receive while another sends; under TLS both take a lock, for work in memory only.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/types.h"
#include "base/unique_fd.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::net {

// The system's text for an errno value; strerror() is not safe in threads.
[[nodiscard]] inline std::string error_text(int error) {
  return std::generic_category().message(error);
}

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string name;                               // as written, for messages
  std::string host;                               // what its certificate must be for
  std::string alpn;                               // a protocol to agree on by TLS; empty: none
  std::shared_ptr<const tls::ClientContext> tls;  // nullptr: plain
};

class Socket {
 public:
  Socket();
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // --- Connecting --------------------------------------------------------------------------------
  enum class Progress : std::uint8_t { kPending, kOpen, kFailed };
  // Starts to connect. kPending: poll for interest(), then call continue_connect(). kFailed:
  // error() says why, and the socket is closed.
  Progress start(const Endpoint& to);
  Progress continue_connect();
  // Both in one, blocking for `timeout` at most. kUnavailable says why it failed; kInvalid when TLS
  // does not match on both ends, so that trying again will not help.
  Result<void> connect(const Endpoint& to, Millis timeout);
  // Gives an attempt up, with ETIMEDOUT as its error().
  void time_out();
  void close();

  // Whether it is connected, the TLS handshake included.
  [[nodiscard]] bool is_open() const { return state_ == State::kOpen; }
  [[nodiscard]] bool is_connecting() const {
    return state_ == State::kConnecting || state_ == State::kHandshake;
  }
  // Why the last attempt to connect failed.
  [[nodiscard]] const std::string& error() const { return error_; }
  // The connection was refused or lost because TLS does not match on both ends. (A server may
  // refuse our certificate only after the handshake.) Kept until the next start().
  [[nodiscard]] bool is_tls_mismatch() const;

  // --- Polling -----------------------------------------------------------------------------------
  [[nodiscard]] int fd() const { return fd_.get(); }
  // What to poll for; `has_unsent`: send() has left something. A negative descriptor when closed.
  [[nodiscard]] pollfd interest(bool has_unsent) const;

  // --- Bytes, while open -------------------------------------------------------------------------
  // Sends what fits and removes it from `bytes`; false when the connection is gone.
  bool send(std::string& bytes);
  // Appends what can be read without waiting. False when the connection is gone; `why` says how.
  bool receive(std::string& received, std::string& why);

  // The port of this end; 0 when it is not known.
  [[nodiscard]] std::uint16_t local_port() const;
  // Bytes on this connection. Any thread.
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint8_t { kClosed, kConnecting, kHandshake, kOpen };
  struct Secure;
  Progress fail(std::string error);
  Progress finish_tcp();
  Progress continue_handshake();
  bool decrypt(std::string_view bytes, std::string& received, std::string& why);
  // Sends what the socket has room for; sets `lost` when the connection is gone.
  std::size_t send_some(std::string_view bytes, bool& lost);

  UniqueFd fd_;
  State state_ = State::kClosed;
  const Endpoint* to_ = nullptr;    // while connecting
  std::unique_ptr<Secure> secure_;  // nullptr: plain
  bool tls_mismatch_ = false;       // of the attempt that failed
  std::string error_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace pawl::net
