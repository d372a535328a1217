// A blocking connection to a server on this machine. Throws std::runtime_error: a benchmark that
// lost its peer has nothing to report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pawl::bench {

inline constexpr std::size_t kReplyMax = 2048;

// Throws with `what` and the text of errno.
[[noreturn]] void fail(const std::string& what);

class Loopback {
 public:
  explicit Loopback(std::uint16_t port);
  ~Loopback();
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Requests are far smaller than a socket buffer, and at most one is under way: a short write
  // means trouble.
  void send(std::string_view bytes) const;
  [[nodiscard]] std::size_t receive(char* into, std::size_t room) const;
  // Sends, and waits for the whole reply; `into` has room for kReplyMax.
  [[nodiscard]] std::string_view ask(std::string_view request, char* into) const;

 private:
  int fd_;
};

}  // namespace pawl::bench
