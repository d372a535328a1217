#include "http/connection.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace pawl::http {

namespace beast = boost::beast;

namespace {

// Ends our side of the connection; what was written can still be read. `done` is not called.
template <class Done>
void end_output(asio::ip::tcp::socket& socket, Done&& /*done*/) {
  ErrorCode ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}
// Sends TLS's close_notify, so that the peer knows that nothing was cut off, and calls `done` after
// the peer's.
template <class Stream, class Done>
void end_output(Stream& stream, Done&& done) {
  stream.async_shutdown(std::forward<Done>(done));
}

// The answer to bytes that are not a request.
Problem unreadable(const ErrorCode& error) {
  if (error == beast::http::error::header_limit) {
    return {431, "header_too_large", "the header is too large",
            fmt::format("a header may have at most {} bytes", limits::kHttpHeaderMax)};
  }
  if (error == beast::http::error::body_limit) {
    return {413, "body_too_large", "the body is too large",
            fmt::format("a body may have at most {} bytes", limits::kHttpBodyMax)};
  }
  return {400, "malformed", "not HTTP/1.1", "this is not a request: " + error.message()};
}

template <class Stream>
class Connection final : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, const ConnectionContext& context, Peer peer, ConnectionSlot slot)
      : stream_(std::move(stream)),
        timer_(stream_.get_executor()),
        context_(context),
        peer_(std::move(peer)),
        slot_(std::move(slot)) {}

  void start() {
    deadline_ = std::chrono::steady_clock::now() + context_.bounds.authenticate;
    slot_->on_displaced = [weak = this->weak_from_this()] {
      if (const Handle self = weak.lock()) self->close();
    };
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

  // The exchange as the handler holds it. It keeps the connection alive, which may have no pending
  // operation; the connection does not keep the exchange. An answer may come too late.
  class OpenExchange final : public Exchange {
   public:
    OpenExchange(Request request, Handle connection)
        : request_(std::move(request)), connection_(std::move(connection)) {}
    const Request& request() const override { return request_; }
    Admission admit() override {
      Connection* connection = current();
      return connection != nullptr ? connection->admit() : Admission::kNone;
    }
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
    // Null once the connection no longer waits for this exchange.
    [[nodiscard]] Connection* current() const {
      return connection_->open_.lock().get() == this ? connection_.get() : nullptr;
    }
    const Request request_;
    const Handle connection_;
  };

  // --- Its place ---------------------------------------------------------------------------------

  // A client that is known and is sending a request is not silent; a stranger may be sending one
  // for ever.
  void enter(Phase phase) {
    phase_ = phase;
    if (slot_ == nullptr) return;
    slot_->set_silent(phase == Phase::kIdle || phase == Phase::kLingering ||
                      (phase == Phase::kReading && !admitted_));
  }

  Admission admit() {
    const Admission admission = slot_->admit();
    admitted_ = admission != Admission::kNone;
    if (!admitted_) keep_alive_ = false;
    return admission;
  }

  [[nodiscard]] bool late() const {
    return !admitted_ && deadline_ <= std::chrono::steady_clock::now();
  }

  // --- Reading -----------------------------------------------------------------------------------

  void expect_request() {
    PAWL_ASSERT(phase_ == Phase::kIdle || phase_ == Phase::kWriting);
    enter(Phase::kIdle);
    request_bytes_ = 0;
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(limits::kHttpHeaderMax);
    parser_->body_limit(limits::kHttpBodyMax);
    limit(context_.bounds.idle);
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
    // More input behind an unanswered request than any request may have: not a well-behaved client.
    if (buffer_.size() > limits::kHttpHeaderMax + limits::kHttpBodyMax) return close();
    report_bytes();
    read();
  }

  // The memory of strangers is bounded (places.h). A field of the header takes more than its bytes.
  void report_bytes() {
    if (admitted_ || slot_ == nullptr) return;
    std::size_t bytes = buffer_.size() + request_bytes_;
    if (phase_ == Phase::kReading) {
      const auto& message = parser_->get();
      bytes +=
          kFieldBytes * static_cast<std::size_t>(std::distance(message.begin(), message.end()));
    }
    slot_->set_bytes(bytes);
  }

  void end_of_input(ErrorCode error) {
    ended_ = true;
    const bool answering =
        phase_ == Phase::kHandling || phase_ == Phase::kWriting || phase_ == Phase::kStreaming;
    if (error != asio::error::eof || !answering) return close();
    // A client that ends its side of a stream leaves; one that waits for an answer may still read
    // it.
    if (phase_ == Phase::kStreaming) return close();
    report_gone(Gone::kSilent);
  }

  void parse() {
    while (buffer_.size() > 0 && (phase_ == Phase::kIdle || phase_ == Phase::kReading)) {
      if (phase_ == Phase::kIdle) {
        enter(Phase::kReading);
        limit(context_.bounds.request);
      }
      ErrorCode error;
      const std::size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      request_bytes_ += used;
      if (error == beast::http::error::need_more) break;
      if (error) return refuse(unreadable(error));
      if (parser_->is_done()) return handle();
      if (used == 0) break;
    }
    send_continue();
  }

  // `Expect: 100-continue`: the client sends the body only after a 100 Continue.
  void send_continue() {
    if (phase_ != Phase::kReading || continue_sent_ || !parser_->is_header_done()) return;
    if (!same_word(field(parser_->get(), beast::http::field::expect), "100-continue")) return;
    continue_sent_ = continue_pending_ = true;
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = this->shared_from_this()](ErrorCode, std::size_t) {
                        self->continue_pending_ = false;
                        if (const auto held = std::exchange(self->held_, {})) held();
                      });
  }

  // Writes now, or after the 100 Continue: the body may be here, and answered, before that is sent.
  void after_continue(std::function<void()> write) {
    if (!continue_pending_) return write();
    PAWL_ASSERT(!held_);
    held_ = std::move(write);
  }

  static std::string_view field(const Parser::value_type& message, beast::http::field name) {
    const auto value = message[name];
    return {value.data(), value.size()};
  }

  // --- Handling ----------------------------------------------------------------------------------

  void handle() {
    PAWL_ASSERT(phase_ == Phase::kReading && parser_->is_done());
    enter(Phase::kHandling);
    timer_.cancel();
    continue_sent_ = false;
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
    request.tls = peer_.tls;
    const auto open = std::make_shared<OpenExchange>(std::move(request), this->shared_from_this());
    open_ = open;
    context_.handler(open);
  }

  void refuse(const Problem& problem) {
    PAWL_ASSERT(phase_ == Phase::kReading);
    enter(Phase::kHandling);
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
    enter(Phase::kWriting);
    open_.reset();
    const bool has_body = response.status != 204;
    PAWL_ASSERT(response.status >= 200 && response.status < 600);
    const auto message = std::make_shared<Message>(message_of(std::move(response)));
    message->keep_alive(keep_alive_ && !ended_ && !late());
    if (has_body) message->content_length(message->body().size());
    if (head_only_) message->body().clear();
    limit(context_.bounds.write);
    after_continue([self = this->shared_from_this(), message] {
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
      const std::shared_ptr<OpenExchange> open = open_.lock();
      respond(std::move(head));
      if (open && open->on_gone) open->on_gone(Gone::kClosed);
      return;
    }
    enter(Phase::kStreaming);
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
    queued_ += text;
    write_stream();
  }

  void finish_stream() {
    if (phase_ != Phase::kStreaming) return;
    finishing_ = true;
    write_stream();
  }

  void write_stream() {
    PAWL_ASSERT(phase_ == Phase::kStreaming);
    if (!writing_.empty()) return;
    if (queued_.empty() && finishing_) return linger();
    if (queued_.empty()) return limit(context_.bounds.quiet);
    writing_.swap(queued_);
    limit(context_.bounds.write);
    after_continue([self = this->shared_from_this()] {
      asio::async_write(self->stream_, asio::buffer(self->writing_),
                        [self](ErrorCode error, std::size_t) {
                          self->writing_.clear();
                          self->stream_written(error);
                        });
    });
  }

  void stream_written(ErrorCode error) {
    if (phase_ != Phase::kStreaming) return;
    if (error) return close();
    const std::shared_ptr<OpenExchange> open = open_.lock();
    if (queued_.empty() && open && open->on_drained) open->on_drained();
    write_stream();
  }

  // --- Time --------------------------------------------------------------------------------------

  // Calls out_of_time() after `time`, unless called again before.
  void limit(Millis time) {
    auto end = std::chrono::steady_clock::now() + time;
    if (!admitted_ && (phase_ == Phase::kIdle || phase_ == Phase::kReading))
      end = std::min(end, deadline_);
    timer_.expires_at(end);
    timer_.async_wait([weak = this->weak_from_this()](ErrorCode error) {
      const Handle self = weak.lock();
      if (error || !self || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
      self->out_of_time();
    });
  }

  void out_of_time() {
    if (!admitted_ && (phase_ == Phase::kIdle || phase_ == Phase::kReading)) slot_->count_late();
    switch (phase_) {
      case Phase::kReading:
        return refuse({408, "too_slow", "the request took too long",
                       "a request must be complete within " +
                           std::to_string(context_.bounds.request.count()) + " ms"});
      case Phase::kStreaming:
        if (writing_.empty()) return enqueue(quiet_);
        context_.log.warning(
            "http: " + peer_.address + " reads its stream too slowly; closed",
            {{"event", "slow_reader_cut"}, {"user", peer_.user}, {"address", peer_.address}});
        return close();
      default:
        return close();
    }
  }

  // --- The end -----------------------------------------------------------------------------------

  void report_gone(Gone how) {
    const std::shared_ptr<OpenExchange> open = open_.lock();
    if (open && open->on_gone) open->on_gone(how);
  }

  // Closing with unread input would reset the connection, and the client could miss the end of the
  // answer. So end our side first, and read until the client ends its own.
  void linger() {
    PAWL_ASSERT(phase_ == Phase::kWriting || phase_ == Phase::kStreaming);
    report_gone(Gone::kClosed);
    open_.reset();
    if (ended_) return close();
    enter(Phase::kLingering);
    end_output(stream_, [self = this->shared_from_this()](ErrorCode) { self->close(); });
    limit(kLingerMax);
    read();
  }

  void close() {
    if (phase_ == Phase::kClosed) return;
    enter(Phase::kClosed);
    timer_.cancel();
    ErrorCode ignored;
    beast::get_lowest_layer(stream_).close(ignored);
    report_gone(Gone::kClosed);
    open_.reset();
    slot_.reset();
  }

  static constexpr std::size_t kReadSize = 8 * 1024;
  static constexpr std::size_t kFieldBytes = 96;  // of a field, without its text
  static constexpr Millis kLingerMax{2000};

  Stream stream_;
  asio::steady_timer timer_;
  const ConnectionContext context_;
  const Peer peer_;
  ConnectionSlot slot_;  // Given back when the connection closes.
  bool admitted_ = false;
  std::chrono::steady_clock::time_point deadline_;  // To be admitted.

  Phase phase_ = Phase::kIdle;
  beast::flat_buffer buffer_;
  std::size_t request_bytes_ = 0;  // of the request that is read or handled
  std::optional<Parser> parser_;
  bool reading_ = false;           // A read is pending.
  bool ended_ = false;             // The peer has ended its side.
  bool continue_sent_ = false;     // 100 Continue was sent for this request,
  bool continue_pending_ = false;  // and is not written completely yet.
  std::function<void()> held_;     // What is to be written after it.

  // Of the request that is being answered.
  std::weak_ptr<OpenExchange> open_;
  bool keep_alive_ = false;
  bool head_only_ = false;
  unsigned version_ = 11;

  // Of a stream.
  std::string quiet_;       // Sent when there was nothing else for a while.
  std::string queued_;      // To be written next.
  std::string writing_;     // Being written now.
  bool finishing_ = false;  // Linger once everything is written.
};

}  // namespace

void start_connection(asio::ip::tcp::socket socket, const ConnectionContext& context, Peer peer,
                      ConnectionSlot slot) {
  std::make_shared<Connection<asio::ip::tcp::socket>>(std::move(socket), context, std::move(peer),
                                                      std::move(slot))
      ->start();
}

void start_connection(TlsStream stream, const ConnectionContext& context, Peer peer,
                      ConnectionSlot slot) {
  std::make_shared<Connection<TlsStream>>(std::move(stream), context, std::move(peer),
                                          std::move(slot))
      ->start();
}

void send_refusal(asio::ip::tcp::socket& socket, const Problem& problem) {
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
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  // Closing with unread input resets the connection, and the client could miss the answer.
  char unread[limits::kHttpHeaderMax];
  socket.read_some(asio::buffer(unread), ignored);
}

}  // namespace pawl::http
