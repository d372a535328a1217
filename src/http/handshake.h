// The beginning of a connection that is to speak TLS. Included by server.cc only, like
// connection.h.
//
// Whoever does not begin as TLS does is told so in the clear: a person with curl http://… should
// not have to guess. The common name of a verified client certificate becomes the user of every
// request.
#pragma once

#include <boost/asio/ssl/stream.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include "http/connection.h"
#include "tls/certificate.h"
#include "tls/context.h"
#include "tls/reason.h"

namespace pawl::http {

// Everything that is said to someone who gets no connection: told in one piece, and not waited for.
void tell_in_the_clear(asio::ip::tcp::socket& socket, const Problem& problem);

class Handshake final : public std::enable_shared_from_this<Handshake> {
 public:
  using Stream = asio::ssl::stream<asio::ip::tcp::socket>;

  Handshake(asio::ip::tcp::socket socket, const tls::ServerContext& context, Surroundings around,
            std::string peer, std::shared_ptr<void> place)
      : stream_(std::move(socket), SSL_new(context.native())),
        timer_(stream_.get_executor()),
        around_(around),
        peer_(std::move(peer)),
        place_(std::move(place)) {
    tls::set_refusal_note(stream_.native_handle(), &refusal_);
  }

  void start() {
    timer_.expires_after(around_.bounds.handshake);
    timer_.async_wait([weak = weak_from_this()](ErrorCode stopped) {
      const auto self = weak.lock();
      if (!stopped && self && !self->over_) self->fail("not over in time");
    });
    stream_.next_layer().async_wait(asio::ip::tcp::socket::wait_read,
                                    [self = shared_from_this()](ErrorCode error) {
                                      if (!error && !self->over_) self->begin();
                                    });
  }

 private:
  static constexpr char kHandshakeRecord = 0x16;

  void begin() {
    char first = 0;
    const ssize_t count = ::recv(stream_.next_layer().native_handle(), &first, 1, MSG_PEEK);
    if (count > 0 && first != kHandshakeRecord) return refuse_plain();
    stream_.async_handshake(Stream::server, [self = shared_from_this()](ErrorCode error) {
      if (self->over_) return;
      if (error) return self->fail(self->refusal_.empty() ? error.message() : self->refusal_);
      self->introduce();
    });
  }

  void introduce() {
    over_ = true;
    timer_.cancel();
    SSL* ssl = stream_.native_handle();
    tls::set_refusal_note(ssl, nullptr);
    const X509* certificate = SSL_get0_peer_certificate(ssl);
    const bool verified = certificate != nullptr && SSL_get_verify_result(ssl) == X509_V_OK;
    std::string user = verified ? tls::common_name(*certificate) : "";
    std::make_shared<Connection<Stream>>(std::move(stream_), around_,
                                         Peer{std::move(peer_), std::move(user)}, std::move(place_))
        ->start();
  }

  void refuse_plain() {
    complain("the client does not speak TLS");
    tell_in_the_clear(stream_.next_layer(), {400, "tls_required", "this port speaks TLS",
                                             "ask again with https:// in front of the address"});
    give_up();
  }

  void fail(const std::string& why) {
    complain(why);
    give_up();
  }

  void complain(const std::string& why) {
    around_.peer_log.warning(std::chrono::steady_clock::now().time_since_epoch(),
                             fmt::format("http: TLS handshake with {} failed: {}", peer_, why),
                             {{"event", "tls_handshake_failed"}, {"address", peer_}});
  }

  void give_up() {
    over_ = true;
    timer_.cancel();
    ErrorCode ignored;
    stream_.next_layer().close(ignored);
  }

  std::string refusal_;  // why a certificate was refused; outlives the stream
  Stream stream_;
  asio::steady_timer timer_;
  const Surroundings around_;
  std::string peer_;
  std::shared_ptr<void> place_;
  bool over_ = false;
};

}  // namespace pawl::http
