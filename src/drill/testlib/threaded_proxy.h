// A TcpProxy on a thread of its own, for tests whose client blocks. Any thread may call it.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drill/tcp_proxy.h"

namespace pawl::drill {

class ThreadedProxy {
 public:
  // Forwards to a server on the loopback interface. Throws when there is no free port.
  explicit ThreadedProxy(std::uint16_t server_port)
      : proxy_(open(server_port)), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) serve();
        }) {}

  [[nodiscard]] std::string address() const { return proxy_->address(); }
  [[nodiscard]] std::uint16_t port() const { return proxy_->port(); }

  void cut(Cut cut) {
    const std::lock_guard hold(mutex_);
    proxy_->cut(cut);
  }
  void silence_connections() {
    const std::lock_guard hold(mutex_);
    proxy_->silence_connections();
  }
  void close_at(CloseAt when, std::string request) {
    const std::lock_guard hold(mutex_);
    proxy_->close_at(when, std::move(request));
  }

 private:
  static std::unique_ptr<TcpProxy> open(std::uint16_t server_port) {
    auto opened = TcpProxy::open({{.host = "127.0.0.1", .port = server_port}});
    if (!opened) throw std::runtime_error(opened.error().detail);
    return *std::move(opened);
  }

  void serve() {
    constexpr int kWaitMs = 10;  // until a stop request is noticed
    // Only this thread adds or removes connections, so what was polled stays valid without the
    // lock.
    std::vector<pollfd> wanted;
    {
      const std::lock_guard hold(mutex_);
      wanted = proxy_->interest();
    }
    if (::poll(wanted.data(), wanted.size(), kWaitMs) < 0) return;
    const std::lock_guard hold(mutex_);
    proxy_->on_ready(wanted);
  }

  std::mutex mutex_;  // guards *proxy_
  const std::unique_ptr<TcpProxy> proxy_;
  std::jthread thread_;
};

}  // namespace pawl::drill
