#include "http/handshake.h"

#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "base/assert.h"
#include "tls/certificate.h"
#include "tls/tls_errors.h"

namespace pawl::http {
namespace {

class Handshake final : public std::enable_shared_from_this<Handshake> {
 public:
  Handshake(asio::ip::tcp::socket socket, const tls::ServerContext& tls,
            const ConnectionContext& context, std::string peer, ConnectionSlot slot)
      : stream_(std::move(socket), SSL_new(tls.native())),
        timer_(stream_.get_executor()),
        context_(context),
        peer_(std::move(peer)),
        slot_(std::move(slot)) {
    tls::set_refusal_note(stream_.native_handle(), &refusal_);
  }

  void start() {
    timer_.expires_after(context_.bounds.handshake);
    timer_.async_wait([weak = weak_from_this()](ErrorCode stopped) {
      const auto self = weak.lock();
      if (stopped || !self || self->over_) return;
      self->slot_->count_late();
      self->fail("not finished in time");
    });
    slot_->on_displaced = [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->over_)
        self->fail("too many connections are not authenticated, and this one is the oldest");
    };
    stream_.next_layer().async_wait(asio::ip::tcp::socket::wait_read,
                                    [self = shared_from_this()](ErrorCode error) {
                                      if (!error && !self->over_) self->begin();
                                    });
  }

 private:
  static constexpr char kHandshakeRecord = 0x16;  // The first byte of a TLS connection.

  void begin() {
    char first = 0;
    const ssize_t count = ::recv(stream_.next_layer().native_handle(), &first, 1, MSG_PEEK);
    if (count > 0 && first != kHandshakeRecord) return refuse_plain();
    stream_.async_handshake(TlsStream::server, [self = shared_from_this()](ErrorCode error) {
      if (self->over_) return;
      if (error) return self->fail(self->refusal_.empty() ? error.message() : self->refusal_);
      self->succeed();
    });
  }

  void succeed() {
    PAWL_ASSERT(!over_);
    over_ = true;
    timer_.cancel();
    SSL* ssl = stream_.native_handle();
    tls::set_refusal_note(ssl, nullptr);
    const X509* certificate = SSL_get0_peer_certificate(ssl);
    const bool verified = certificate != nullptr && SSL_get_verify_result(ssl) == X509_V_OK;
    std::string user = verified ? tls::common_name(*certificate) : "";
    start_connection(std::move(stream_), context_, Peer{std::move(peer_), std::move(user), true},
                     std::move(slot_));
  }

  void refuse_plain() {
    log_failure("the client does not speak TLS");
    send_refusal(stream_.next_layer(), {400, "tls_required", "this port speaks TLS",
                                        "use https:// in front of the address"});
    close();
  }

  void fail(const std::string& why) {
    log_failure(why);
    close();
  }

  void log_failure(const std::string& why) {
    context_.peer_log.warning(std::chrono::steady_clock::now().time_since_epoch(),
                              fmt::format("http: TLS handshake with {} failed: {}", peer_, why),
                              {{"event", "tls_handshake_failed"}, {"address", peer_}});
  }

  void close() {
    over_ = true;
    timer_.cancel();
    ErrorCode ignored;
    stream_.next_layer().close(ignored);
  }

  std::string refusal_;  // Why a certificate was refused. Declared first: it outlives the stream.
  TlsStream stream_;
  asio::steady_timer timer_;
  const ConnectionContext context_;
  std::string peer_;
  ConnectionSlot slot_;
  bool over_ = false;
};

}  // namespace

void start_handshake(asio::ip::tcp::socket socket, const tls::ServerContext& tls,
                     const ConnectionContext& context, std::string peer, ConnectionSlot slot) {
  std::make_shared<Handshake>(std::move(socket), tls, context, std::move(peer), std::move(slot))
      ->start();
}

}  // namespace pawl::http
