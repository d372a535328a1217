#include "http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "base/assert.h"
#include "http/connection.h"
#include "http/handshake.h"

namespace pawl::http {
namespace {

using asio::ip::tcp;

std::string text_of(const tcp::endpoint& peer) {
  std::ostringstream out;
  out << peer;
  return out.str();
}

}  // namespace

class Server::Impl {
 public:
  Impl(Log& log, Handler handler, Bounds bounds)
      : log_(log), handler_(std::move(handler)), bounds_(bounds), acceptor_(io_), pause_(io_) {}

  Result<void> start(UniqueFd listener) {
    PAWL_ASSERT(handler_ && !thread_.joinable());
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return Error{Code::kInvalid, "http: not a socket"};
    ErrorCode error;
    acceptor_.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.get(), error);
    if (error) return Error{Code::kInvalid, "http: " + error.message()};
    (void)listener.release();
    accept();
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void post(std::function<void()> task) { asio::post(io_, std::move(task)); }

  [[nodiscard]] Usage usage() const { return {connections_, bounds_.connections, refused_}; }

  void use_tls(std::shared_ptr<const tls::ServerContext> context) {
    if (!thread_.joinable()) {
      tls_ = std::move(context);
    } else {
      post([this, context = std::move(context)]() mutable { tls_ = std::move(context); });
    }
  }

 private:
  void accept() {
    acceptor_.async_accept([this](ErrorCode error, tcp::socket socket) {
      if (!error) {
        accepted(std::move(socket));
        return accept();
      }
      if (error == asio::error::operation_aborted) return;
      // Most likely out of file descriptors: connections in the backlog wait a little longer.
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](ErrorCode stopped) {
        if (!stopped) accept();
      });
    });
  }

  void accepted(tcp::socket socket) {
    ErrorCode ignored;
    const tcp::endpoint peer = socket.remote_endpoint(ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
    if (connections_ >= bounds_.connections) {
      ++refused_;
      return refuse(std::move(socket));
    }
    ++connections_;
    ConnectionSlot slot(nullptr, [this](void*) {
      PAWL_ASSERT(connections_ > 0);
      --connections_;
    });
    const ConnectionContext context{handler_, bounds_, log_, peer_log_};
    if (tls_ != nullptr)
      return start_handshake(std::move(socket), *tls_, context, text_of(peer), std::move(slot));
    start_connection(std::move(socket), context, Peer{text_of(peer)}, std::move(slot));
  }

  // With TLS the client could not read an answer without a handshake, and the limit is there to
  // save handshakes.
  void refuse(tcp::socket socket) {
    if (tls_ != nullptr) return;
    send_refusal(socket,
                 {503,
                  "busy",
                  "a limit is reached",
                  fmt::format("connections: the limit of {} is reached", bounds_.connections),
                  Retry::kLater,
                  {{"Retry-After", "1"}}});
  }

  static constexpr Millis kAcceptPause{100};

  Log& log_;
  const Handler handler_;
  const Bounds bounds_;
  RateLimitedLog peer_log_{log_};
  std::shared_ptr<const tls::ServerContext> tls_;  // Null: connections are plain.
  // Declared before io_: destroying io_ ends the last connections, which give their slots back.
  // Atomic for usage() only; this thread alone changes them.
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

Server::Server(Log& log, Handler handler, Bounds bounds)
    : impl_(std::make_unique<Impl>(log, std::move(handler), bounds)) {}

Server::~Server() {
  stop();
}

Result<void> Server::start(UniqueFd listener) {
  return impl_->start(std::move(listener));
}

void Server::use_tls(std::shared_ptr<const tls::ServerContext> context) {
  impl_->use_tls(std::move(context));
}

void Server::stop() {
  impl_->stop();
}

void Server::post(std::function<void()> task) {
  impl_->post(std::move(task));
}

Server::Usage Server::usage() const {
  return impl_->usage();
}

}  // namespace pawl::http
