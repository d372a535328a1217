#include "bench/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "bench/conversation.h"

namespace pawl::bench {

void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

Loopback::Loopback(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fail("connect to port " + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Loopback::~Loopback() {
  ::close(fd_);
}

void Loopback::send(std::string_view bytes) const {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) fail("send");
}

std::size_t Loopback::receive(char* into, std::size_t room) const {
  const ssize_t got = ::recv(fd_, into, room, 0);
  if (got < 0) fail("recv");
  if (got == 0) throw std::runtime_error("the peer closed a connection");
  return static_cast<std::size_t>(got);
}

std::string_view Loopback::ask(std::string_view request, char* into) const {
  send(request);
  for (std::size_t filled = 0;;) {
    filled += receive(into + filled, kReplyMax - filled);
    const std::string_view bytes(into, filled);
    if (const auto size = frame_size(bytes); !size || *size != 0 || filled == kReplyMax)
      return bytes;
  }
}

}  // namespace pawl::bench
