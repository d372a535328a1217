// One connection of the server. Included by server.cc only: Asio and Beast take long to compile.
//
//   idle ──first byte──▶ reading ──last byte──▶ handling ──answer──▶ writing ──▶ idle, or lingering ──▶ closed
//                                                   ╰──begin_stream──▶ streaming ──▶ lingering
//
// It reads all the time, also while a request is being handled: otherwise the hang-up of whoever
// waits for a lock would go unnoticed. Each phase has its own time limit, on the one timer. Stream
// is a TCP socket, or TLS over one.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/assert.h"
#include "base/rate_limited_log.h"
#include "http/server.h"

namespace pawl::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

// What a connection needs of its server.
struct Surroundings {
  const Server::Handler& handler;
  const Server::Bounds& bounds;
  Log& log;
  RateLimitedLog& peer_log;  // about peers, which anyone can be
};

// Who is at the other end.
struct Peer {
  std::string address;
  std::string user = {};  // by its certificate
};

// Nothing more will be written; the peer may read that. What `done` hears is of no interest: it is
// the end.
template <class Done>
void end_output(asio::ip::tcp::socket& socket, Done&& /*done*/) {
  ErrorCode ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}
// TLS says goodbye, so that the peer knows that nothing was cut off; then it waits for the peer's
// goodbye.
template <class Stream, class Done>
void end_output(Stream& stream, Done&& done) {
  stream.async_shutdown(std::forward<Done>(done));
}

// What to answer when what was read is no request.
[[nodiscard]] Problem unreadable(const ErrorCode& error);

template <class Stream>
class Connection final : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, Surroundings around, Peer peer, std::shared_ptr<void> place)
      : stream_(std::move(stream)),
        timer_(stream_.get_executor()),
        around_(around),
        peer_(std::move(peer)),
        place_(std::move(place)) {}

  void start() {
    expect_request();
    read();
  }

 private:
  enum class Phase : std::uint8_t {
    kIdle,
    kReading,
    kHandling,
    kWriting,
    kStreaming,
    kLingering,
    kClosed
  };
  using Parser = beast::http::request_parser<beast::http::string_body>;
  using Message = beast::http::response<beast::http::string_body>;
  using Handle = std::shared_ptr<Connection>;

  // The exchange as the handler holds it. It keeps the connection, which may have nothing else to
  // wait for; not the other way round. An answer may come too late.
  class Open final : public Exchange {
   public:
    Open(Request request, Handle connection)
        : request_(std::move(request)), connection_(std::move(connection)) {}
    const Request& request() const override { return request_; }
    void answer(Response response) override {
      if (Connection* connection = current()) connection->respond(std::move(response));
    }
    void begin_stream(Response head, std::string quiet) override {
      if (Connection* connection = current()) connection->stream(std::move(head), std::move(quiet));
    }
    void write(std::string text) override {
      if (Connection* connection = current()) connection->enqueue(text);
    }
    void end_stream() override {
      if (Connection* connection = current()) connection->finish_stream();
    }

   private:
    // Nothing once the connection has gone on without us.
    [[nodiscard]] Connection* current() const {
      return connection_->open_.lock().get() == this ? connection_.get() : nullptr;
    }
    const Request request_;
    const Handle connection_;
  };

  // --- Reading -----------------------------------------------------------------------------------

  void expect_request() {
    phase_ = Phase::kIdle;
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(limits::kHttpHeaderMax);
    parser_->body_limit(limits::kHttpBodyMax);
    limit(around_.bounds.idle);
  }

  void read() {
    if (reading_ || phase_ == Phase::kClosed) return;
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(kReadSize),
                            [self = this->shared_from_this()](ErrorCode error, std::size_t count) {
                              self->reading_ = false;
                              self->have_read(error, count);
                            });
  }

  void have_read(ErrorCode error, std::size_t count) {
    if (phase_ == Phase::kClosed) return;
    if (error) return end_of_input(error);
    buffer_.commit(count);
    if (phase_ == Phase::kLingering) buffer_.clear();
    if (phase_ == Phase::kIdle || phase_ == Phase::kReading) parse();
    // More behind an unanswered request than any request may have: this is no client we know.
    if (buffer_.size() > limits::kHttpHeaderMax + limits::kHttpBodyMax) return close();
    read();
  }

  void end_of_input(ErrorCode error) {
    ended_ = true;
    const bool at_work =
        phase_ == Phase::kHandling || phase_ == Phase::kWriting || phase_ == Phase::kStreaming;
    if (error != asio::error::eof || !at_work) return close();
    // Of a stream nothing is left to say to someone who leaves; an answer may still be read.
    if (phase_ == Phase::kStreaming) return close();
    tell_gone(Gone::kSilent);
  }

  void parse() {
    while (buffer_.size() > 0 && (phase_ == Phase::kIdle || phase_ == Phase::kReading)) {
      if (phase_ == Phase::kIdle) {
        phase_ = Phase::kReading;
        limit(around_.bounds.request);
      }
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error == beast::http::error::need_more) break;
      if (error) return refuse(unreadable(error));
      if (parser_->is_done()) return handle();
      if (used == 0) break;
    }
    invite_body();
  }

  // `Expect: 100-continue`: whoever waits for leave to send its body gets it.
  void invite_body() {
    if (phase_ != Phase::kReading || invited_ || !parser_->is_header_done()) return;
    if (!same_word(field(parser_->get(), beast::http::field::expect), "100-continue")) return;
    invited_ = inviting_ = true;
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = this->shared_from_this()](ErrorCode, std::size_t) {
                        self->inviting_ = false;
                        if (const auto held = std::exchange(self->held_, {})) held();
                      });
  }

  // The body may be here, and answered, before the invitation has left.
  void when_invited(std::function<void()> write) {
    if (!inviting_) return write();
    held_ = std::move(write);
  }

  static std::string_view field(const Parser::value_type& message, beast::http::field name) {
    const auto value = message[name];
    return {value.data(), value.size()};
  }

  // --- Handling ----------------------------------------------------------------------------------

  void handle() {
    phase_ = Phase::kHandling;
    timer_.cancel();
    invited_ = false;
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    version_ = message.version();
    head_only_ = message.method() == beast::http::verb::head;
    Request request;
    request.method = head_only_ ? "GET" : std::string(message.method_string());
    request.target = std::string(message.target());
    for (const auto& header : message) {
      request.headers.push_back({std::string(header.name_string()), std::string(header.value())});
    }
    request.body = std::move(message.body());
    request.peer = peer_.address;
    request.user = peer_.user;
    const auto open = std::make_shared<Open>(std::move(request), this->shared_from_this());
    open_ = open;
    around_.handler(open);
  }

  void refuse(const Problem& problem) {
    phase_ = Phase::kHandling;
    keep_alive_ = false;
    head_only_ = false;
    version_ = 11;
    respond(to_response(problem));
  }

  // --- Writing -----------------------------------------------------------------------------------

  Message message_of(Response response) const {
    Message message(static_cast<beast::http::status>(response.status), version_);
    if (!response.type.empty()) message.set(beast::http::field::content_type, response.type);
    message.set(beast::http::field::date, date_text(std::chrono::system_clock::now()));
    message.set(beast::http::field::cache_control, "no-store");
    message.set("X-Content-Type-Options", "nosniff");
    message.set("Cross-Origin-Resource-Policy", "same-origin");
    for (const Header& header : response.headers) message.set(header.name, header.value);
    message.body() = std::move(response.body);
    return message;
  }

  void respond(Response response) {
    if (phase_ != Phase::kHandling) return;
    phase_ = Phase::kWriting;
    open_.reset();
    const bool has_body = response.status != 204;
    const auto message = std::make_shared<Message>(message_of(std::move(response)));
    message->keep_alive(keep_alive_ && !ended_);
    if (has_body) message->content_length(message->body().size());
    if (head_only_) message->body().clear();
    limit(around_.bounds.write);
    when_invited([self = this->shared_from_this(), message] {
      beast::http::async_write(self->stream_, *message,
                               [self, message](ErrorCode error, std::size_t) {
                                 self->responded(error, message->keep_alive());
                               });
    });
  }

  void responded(ErrorCode error, bool keep_alive) {
    if (phase_ == Phase::kClosed) return;
    if (error) return close();
    if (!keep_alive || ended_) return linger();
    expect_request();
    parse();
  }

  // --- Streams -----------------------------------------------------------------------------------

  void stream(Response head, std::string quiet) {
    if (phase_ != Phase::kHandling) return;
    if (head_only_) {
      const std::shared_ptr<Open> open = open_.lock();
      respond(std::move(head));
      if (open && open->on_gone) open->on_gone(Gone::kClosed);
      return;
    }
    phase_ = Phase::kStreaming;
    quiet_ = std::move(quiet);
    const std::string first = std::move(head.body);
    Message message = message_of(std::move(head));
    message.body().clear();
    message.keep_alive(false);  // It ends with the connection.
    beast::http::response_header<> header = std::move(message.base());
    std::ostringstream text;
    text << header;
    enqueue(text.str() + first);
  }

  void enqueue(const std::string& text) {
    if (phase_ != Phase::kStreaming) return;
    waiting_ += text;
    pump();
  }

  void finish_stream() {
    if (phase_ != Phase::kStreaming) return;
    finishing_ = true;
    pump();
  }

  void pump() {
    if (!leaving_.empty()) return;
    if (waiting_.empty() && finishing_) return linger();
    if (waiting_.empty()) return limit(around_.bounds.quiet);
    leaving_.swap(waiting_);
    limit(around_.bounds.write);
    when_invited([self = this->shared_from_this()] {
      asio::async_write(self->stream_, asio::buffer(self->leaving_),
                        [self](ErrorCode error, std::size_t) {
                          self->leaving_.clear();
                          self->pumped(error);
                        });
    });
  }

  void pumped(ErrorCode error) {
    if (phase_ != Phase::kStreaming) return;
    if (error) return close();
    const std::shared_ptr<Open> open = open_.lock();
    if (waiting_.empty() && open && open->on_drained) open->on_drained();
    pump();
  }

  // --- Time --------------------------------------------------------------------------------------

  void limit(Millis patience) {
    timer_.expires_after(patience);
    timer_.async_wait([weak = this->weak_from_this()](ErrorCode error) {
      const Handle self = weak.lock();
      if (error || !self || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
      self->out_of_time();
    });
  }

  void out_of_time() {
    switch (phase_) {
      case Phase::kReading:
        return refuse({408, "too_slow", "the request took too long",
                       "a request must arrive whole within " +
                           std::to_string(around_.bounds.request.count()) + " ms"});
      case Phase::kStreaming:
        if (leaving_.empty()) return enqueue(quiet_);
        around_.log.warning(
            "http: " + peer_.address + " reads its stream too slowly; closing it",
            {{"event", "slow_reader_cut"}, {"user", peer_.user}, {"address", peer_.address}});
        return close();
      default:
        return close();
    }
  }

  // --- The end -----------------------------------------------------------------------------------

  void tell_gone(Gone how) {
    const std::shared_ptr<Open> open = open_.lock();
    if (open && open->on_gone) open->on_gone(how);
  }

  // Closing with unread input would reset the connection, and the peer could miss what it was told
  // last.
  void linger() {
    tell_gone(Gone::kClosed);
    open_.reset();
    if (ended_) return close();
    phase_ = Phase::kLingering;
    end_output(stream_, [self = this->shared_from_this()](ErrorCode) { self->close(); });
    limit(kLingerMax);
    read();
  }

  void close() {
    if (phase_ == Phase::kClosed) return;
    phase_ = Phase::kClosed;
    timer_.cancel();
    ErrorCode ignored;
    beast::get_lowest_layer(stream_).close(ignored);
    tell_gone(Gone::kClosed);
    open_.reset();
    place_.reset();
  }

  static constexpr std::size_t kReadSize = 8 * 1024;
  static constexpr Millis kLingerMax{2000};

  Stream stream_;
  asio::steady_timer timer_;
  const Surroundings around_;
  const Peer peer_;
  std::shared_ptr<void> place_;  // among the connections; given back when it closes

  Phase phase_ = Phase::kIdle;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool reading_ = false;
  bool ended_ = false;          // the peer sends no more
  bool invited_ = false;        // 100 Continue was said
  bool inviting_ = false;       // it has not left yet
  std::function<void()> held_;  // what is to be written after it

  // Of the request that is being answered.
  std::weak_ptr<Open> open_;
  bool keep_alive_ = false;
  bool head_only_ = false;
  unsigned version_ = 11;

  // Of a stream.
  std::string quiet_, waiting_, leaving_;
  bool finishing_ = false;
};

}  // namespace pawl::http
