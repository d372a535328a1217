#include "http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <atomic>
#include <sstream>
#include <thread>

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

Problem unreadable(const ErrorCode& error) {
  if (error == beast::http::error::header_limit) {
    return {431, "header_too_large", "the header is too large",
            fmt::format("a header may have at most {} bytes", limits::kHttpHeaderMax)};
  }
  if (error == beast::http::error::body_limit) {
    return {413, "body_too_large", "the body is too large",
            fmt::format("a body may have at most {} bytes", limits::kHttpBodyMax)};
  }
  return {400, "malformed", "not HTTP/1.1", "this is no request: " + error.message()};
}

void tell_in_the_clear(tcp::socket& socket, const Problem& problem) {
  const Response refusal = to_response(problem);
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\n", refusal.status,
      std::string_view(
          beast::http::obsolete_reason(static_cast<beast::http::status>(refusal.status))),
      date_text(std::chrono::system_clock::now()), refusal.type);
  for (const Header& header : refusal.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  text += fmt::format("Connection: close\r\nContent-Length: {}\r\n\r\n{}", refusal.body.size(),
                      refusal.body);
  ErrorCode ignored;
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  // Closing with unread input resets the connection, and the peer could miss why.
  char unread[limits::kHttpHeaderMax];
  socket.read_some(asio::buffer(unread), ignored);
}

class Server::Inside {
 public:
  Inside(Log& log, Handler handler, Bounds bounds)
      : log_(log), handler_(std::move(handler)), bounds_(bounds), acceptor_(io_), pause_(io_) {}

  Result<void> start(UniqueFd listener) {
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
        welcome(std::move(socket));
        return accept();
      }
      if (error == asio::error::operation_aborted) return;
      // Out of descriptors, most likely: whoever waits in the backlog waits a little longer.
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](ErrorCode stopped) {
        if (!stopped) accept();
      });
    });
  }

  void welcome(tcp::socket socket) {
    ErrorCode ignored;
    const tcp::endpoint peer = socket.remote_endpoint(ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
    if (connections_ >= bounds_.connections) {
      ++refused_;
      return turn_away(std::move(socket));
    }
    ++connections_;
    std::shared_ptr<void> place(nullptr, [this](void*) { --connections_; });
    const Surroundings around{handler_, bounds_, log_, peer_log_};
    if (tls_ != nullptr) {
      return std::make_shared<Handshake>(std::move(socket), *tls_, around, text_of(peer),
                                         std::move(place))
          ->start();
    }
    std::make_shared<Connection<tcp::socket>>(std::move(socket), around, Peer{text_of(peer)},
                                              std::move(place))
        ->start();
  }

  // Whoever came to speak TLS could not read it, and a handshake is what the limit is to save.
  void turn_away(tcp::socket socket) {
    if (tls_ != nullptr) return;
    tell_in_the_clear(socket,
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
  std::shared_ptr<const tls::ServerContext> tls_;  // Nothing: connections are plain.
  // Before io_, whose end is the end of the last connections: they give their places back.
  // Atomic for usage() only; this thread alone changes them.
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

Server::Server(Log& log, Handler handler, Bounds bounds)
    : inside_(std::make_unique<Inside>(log, std::move(handler), bounds)) {}

Server::~Server() {
  stop();
}

Result<void> Server::start(UniqueFd listener) {
  return inside_->start(std::move(listener));
}

void Server::use_tls(std::shared_ptr<const tls::ServerContext> context) {
  inside_->use_tls(std::move(context));
}

void Server::stop() {
  inside_->stop();
}

void Server::post(std::function<void()> task) {
  inside_->post(std::move(task));
}

Server::Usage Server::usage() const {
  return inside_->usage();
}

}  // namespace pawl::http
