// Stands between a client and its database, and can cut the connection at the worst moment: the
// COMMIT has been carried out, its answer is lost.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace pawl {

class CuttingProxy {
 public:
  enum class Cut : std::uint8_t {
    kNever,
    kBeforeCommit,  // The COMMIT never arrives.
    kAfterCommit,   // It is answered, and the answer is thrown away.
  };

  // `commit`: the bytes that one is known by.
  CuttingProxy(std::uint16_t server_port, std::string_view commit)
      : server_port_(server_port), commit_(commit), listener_(listen_on_loopback()) {
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~CuttingProxy() {
    ended_ = true;
    acceptor_.join();
    for (std::thread& pump : pumps_) pump.join();
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // For the next COMMIT only.
  void arm(Cut cut) { cut_ = cut; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  UniqueFd listen_on_loopback() {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd.get(), raw, size) != 0 || listen(fd.get(), 8) != 0 ||
        getsockname(fd.get(), raw, &size) != 0) {
      throw std::runtime_error("no port for the proxy");
    }
    port_ = ntohs(address.sin_port);
    return fd;
  }

  static bool readable(int fd) {
    pollfd item{fd, POLLIN, 0};
    return poll(&item, 1, 20) > 0;
  }

  void accept_all() {
    while (!ended_) {
      if (!readable(listener_.get())) continue;
      const int client = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0) pumps_.emplace_back([this, client] { pump(UniqueFd(client)); });
    }
  }

  void pump(UniqueFd client) {
    UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(server_port_);
    if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return;
    bool swallow = false;
    while (!ended_) {
      pollfd items[2] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
      if (poll(items, 2, 20) <= 0) continue;
      if (items[0].revents != 0) {
        const std::string bytes = take(client.get());
        if (bytes.empty()) return;
        if (bytes.find(commit_) != bytes.npos) {
          const Cut cut = cut_.exchange(Cut::kNever);
          if (cut == Cut::kBeforeCommit) return;
          swallow = cut == Cut::kAfterCommit;
        }
        put(server.get(), bytes);
      }
      if (items[1].revents != 0) {
        const std::string bytes = take(server.get());
        if (bytes.empty() || swallow) return;
        put(client.get(), bytes);
      }
    }
  }

  static std::string take(int fd) {
    std::string bytes(64 * 1024, '\0');
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }

  static void put(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  const std::uint16_t server_port_;
  const std::string commit_;
  std::uint16_t port_ = 0;
  UniqueFd listener_;
  std::atomic<Cut> cut_ = Cut::kNever;
  std::atomic<bool> ended_ = false;
  std::thread acceptor_;
  std::vector<std::thread> pumps_;  // The acceptor's own until it has ended.
};

}  // namespace pawl
