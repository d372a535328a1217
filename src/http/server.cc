#include "http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "base/assert.h"
#include "http/connection.h"
#include "http/handshake.h"
#include "http/places.h"

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
      : log_(log),
        handler_(std::move(handler)),
        bounds_(bounds),
        places_({bounds.newcomers, bounds.newcomer_bytes, bounds.connections, bounds.reserved,
                 &random_}),
        acceptor_(io_),
        pause_(io_) {}

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

  [[nodiscard]] Usage usage() const {
    return {connections_, bounds_.connections + bounds_.reserved + bounds_.newcomers, refused_,
            late_, displaced_};
  }

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
    const Places::Id id = ++last_id_;
    const auto displaced = places_.add(id, now());
    ConnectionSlot slot = std::make_shared<PlaceSlot>(*this, id);
    if (displaced) displace(*displaced);
    const ConnectionContext context{handler_, bounds_, log_, peer_log_};
    if (tls_ != nullptr)
      return start_handshake(std::move(socket), *tls_, context, text_of(peer), std::move(slot));
    start_connection(std::move(socket), context, Peer{text_of(peer)}, std::move(slot));
  }

  class PlaceSlot final : public Slot {
   public:
    PlaceSlot(Impl& server, Places::Id id) : server_(server), id_(id) {
      server_.slots_.emplace(id_, this);
      ++server_.connections_;
    }
    ~PlaceSlot() override {
      server_.places_.remove(id_);
      server_.slots_.erase(id_);
      --server_.connections_;
    }
    Admission admit() override {
      const Places::Admitted admitted = server_.places_.admit(id_);
      if (admitted.admission == Admission::kNone) ++server_.refused_;
      if (admitted.displaced) server_.close(*admitted.displaced);
      return admitted.admission;
    }
    void set_silent(bool silent) override { server_.places_.set_silent(id_, silent, now()); }
    void set_bytes(std::size_t bytes) override {
      Impl& server = server_;  // This slot may end with its connection.
      for (const Places::Id id : server.places_.set_bytes(id_, bytes)) server.displace(id);
    }
    void count_late() override { ++server_.late_; }

   private:
    Impl& server_;
    const Places::Id id_;
  };

  // To make room for another newcomer.
  void displace(Places::Id id) {
    ++displaced_;
    close(id);
  }

  // The slot may end with it.
  void close(Places::Id id) {
    const auto found = slots_.find(id);
    if (found == slots_.end()) return;
    const auto on_displaced = std::move(found->second->on_displaced);
    if (on_displaced) on_displaced();
  }

  static Nanos now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  static constexpr Millis kAcceptPause{100};

  Log& log_;
  const Handler handler_;
  const Bounds bounds_;
  RateLimitedLog peer_log_{log_};
  std::shared_ptr<const tls::ServerContext> tls_;  // Null: connections are plain.
  SystemRandom random_;
  // Declared before io_: destroying io_ ends the last connections, which give their slots back.
  Places places_;
  std::unordered_map<Places::Id, PlaceSlot*> slots_;
  Places::Id last_id_ = 0;
  // Atomic for usage() only; this thread alone changes them.
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_ = 0, late_ = 0, displaced_ = 0;
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
