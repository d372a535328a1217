// Relays connections to a server until go_silent(): the connections it has then stay open,
// but nothing passes any more, as behind a router that forgot them. New ones are relayed.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace pawl {

class SilentRelay {
 public:
  // `server` is "127.0.0.1:port".
  explicit SilentRelay(const std::string& server)
      : server_port_(static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))),
        listener_(make_socket()),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) turn();
        }) {}

  [[nodiscard]] std::string address() const {
    sockaddr_in at{};
    socklen_t size = sizeof(at);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  void go_silent() { ++generation_; }

 private:
  struct Pair {
    UniqueFd client, server;
    int generation;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }
  static UniqueFd make_socket() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in at = loopback(0);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
        ::listen(fd.get(), 16) != 0) {
      throw std::runtime_error("no socket to listen on");
    }
    return fd;
  }

  void turn() {
    std::vector<pollfd> ready{{listener_.get(), POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      const bool silent = pair.generation != generation_;
      ready.push_back({silent ? -1 : pair.client.get(), POLLIN, 0});
      ready.push_back({silent ? -1 : pair.server.get(), POLLIN, 0});
    }
    if (::poll(ready.data(), ready.size(), 10) <= 0) return;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].generation != generation_) continue;
      if (ready[1 + 2 * i].revents != 0) pass(pairs_[i].client, pairs_[i].server);
      if (ready[2 + 2 * i].revents != 0) pass(pairs_[i].server, pairs_[i].client);
    }
    std::erase_if(pairs_, [](const Pair& pair) { return !pair.client || !pair.server; });
    if (ready[0].revents != 0) accept();
  }

  static void pass(UniqueFd& from, UniqueFd& to) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(from.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return from.reset();
    if (::send(to.get(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got)
      to.reset();
  }

  void accept() {
    Pair pair{UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
              UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), generation_};
    const sockaddr_in at = loopback(server_port_);
    if (::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0) {
      pairs_.push_back(std::move(pair));
    }
  }

  const std::uint16_t server_port_;
  const UniqueFd listener_;
  std::atomic<int> generation_ = 0;
  std::vector<Pair> pairs_;  // The thread's own.
  std::jthread thread_;
};

}  // namespace pawl
