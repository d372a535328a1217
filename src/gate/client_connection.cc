#include "gate/client_connection.h"

#include <fmt/format.h>

#include <chrono>

#include "base/assert.h"
#include "gate/limits.h"

namespace pawl::gate {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kLingerTime = 2s;
constexpr std::size_t kLingerBytes = 1024 * 1024;

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 412:
      return "Precondition Failed";
    case 417:
      return "Expectation Failed";
    case 428:
      return "Precondition Required";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Error";
  }
}

}  // namespace

ClientConnection::ClientConnection(Id id, ClientSocket socket, std::string peer, Door door,
                                   Poller& poller, ClientHandler& handler)
    : id_(id),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      door_(door),
      poller_(poller),
      key_(poller.add(*this)),
      handler_(handler),
      phase_began_(poller.now()),
      last_progress_(poller.now()) {
  update();
}

ClientConnection::~ClientConnection() {
  poller_.forget(key_);
}

std::string ClientConnection::take_body() {
  std::string taken = std::exchange(payload_, {});
  if (state_ != State::kClosed) update();
  return taken;
}

bool ClientConnection::is_full() const {
  return out_.size() >= limits::kGateUnsentMax;
}

// --- Input ---------------------------------------------------------------------------------------

void ClientConnection::on_events(std::uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return close();
  if ((events & EPOLLOUT) != 0) flush();
  if (state_ != State::kClosed && (events & EPOLLIN) != 0 && wants_input()) receive();
  if (state_ == State::kHandled && !silent_ && (events & EPOLLRDHUP) != 0 && body_.done()) {
    silent_ = true;
    handler_.on_silent(*this);
  }
  if (state_ != State::kClosed) update();
}

void ClientConnection::receive() {
  const bool was_empty = in_.empty();
  const std::size_t before = in_.size();
  const bool open = socket_.receive(in_);
  const std::size_t count = in_.size() - before;
  if (count > 0) {
    last_progress_ = poller_.now();
    if (state_ == State::kHead && was_empty) phase_began_ = poller_.now();
  }
  if (state_ == State::kLingering) {
    in_.clear();
    lingered_ += count;
    if (!open || lingered_ > kLingerBytes) close();
    return;
  }
  if (count > 0) process();
  if (!open) close();
}

void ClientConnection::process() {
  if (processing_) return;
  processing_ = true;
  bool goes_on = true;
  while (goes_on && !is_last_answer()) {
    if (state_ == State::kHead) {
      goes_on = process_head();
    } else if (state_ == State::kBody || state_ == State::kHandled) {
      goes_on = process_body();
    } else {
      goes_on = false;
    }
  }
  processing_ = false;
}

bool ClientConnection::process_head() {
  const auto end = head_end(in_);
  if (in_.size() > limits::kGateHeadMax && (!end || *end > limits::kGateHeadMax)) {
    refuse({.status = 431,
            .code = "head_too_large",
            .title = "the head of the request is too large",
            .detail = fmt::format("it may have {} bytes", limits::kGateHeadMax)});
    return false;
  }
  if (!end) return false;
  auto parsed = parse_request(std::string_view(in_).substr(0, *end));
  in_.erase(0, *end);
  begun_ = ended_ = false;
  keep_alive_ = true;
  payload_.clear();
  if (const auto* problem = std::get_if<http::Problem>(&parsed)) {
    refuse(*problem);
    return false;
  }
  head_ = std::move(std::get<RequestHead>(parsed));
  body_ = BodyReader(head_.body, BodyReader::Reads::kRequest);
  keep_alive_ = head_.keep_alive;
  state_ = State::kBody;
  phase_began_ = poller_.now();
  if (const auto problem = handler_.on_head(*this)) {
    respond(*problem);
    return state_ == State::kHead;
  }
  if (head_.expects_continue && in_.empty()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
  return state_ == State::kBody;
}

bool ClientConnection::process_body() {
  const bool was_done = body_.done();
  if (const auto read = body_.read(in_, payload_); !read) {
    const bool handled = state_ == State::kHandled;
    const http::Problem problem{.status = 400,
                                .code = "malformed_request",
                                .title = "the request cannot be read",
                                .detail = read.error().detail};
    // Once it is handled, the answer is not ours to give.
    handled ? close() : refuse(problem);
    return false;
  }
  if (state_ == State::kHandled) {
    if (!was_done && (body_.done() || !payload_.empty())) handler_.on_body(*this);
    return state_ == State::kHead;
  }
  if (!body_.done() && payload_.size() < limits::kGateBodyBuffered) return false;
  state_ = State::kHandled;
  phase_began_ = poller_.now();
  handler_.on_request(*this);
  return state_ == State::kHead;
}

void ClientConnection::refuse(const http::Problem& problem) {
  // Where the next request begins is not known.
  body_ = BodyReader(Framing{Framing::Type::kUntilClose, 0}, BodyReader::Reads::kRequest);
  respond(problem);
}

// --- Output --------------------------------------------------------------------------------------

void ClientConnection::respond(const http::Response& response) {
  Headers headers = response.headers;
  if (!response.type.empty()) headers.push_back({"Content-Type", response.type});
  begin(response.status, reason_of(response.status), std::move(headers),
        {Framing::Type::kLength, response.body.size()});
  if (head_.method != "HEAD") send(response.body);
  end();
}

void ClientConnection::begin(int status, std::string_view reason, Headers headers, Framing body) {
  PAWL_ASSERT(!begun_);
  begun_ = true;
  answer_body_ = body;
  // The rest of the request would have to be read first.
  if (!body_.done()) keep_alive_ = false;
  if (body.type == Framing::Type::kLength)
    headers.push_back({"Content-Length", fmt::format("{}", body.length)});
  if (body.type == Framing::Type::kChunked) headers.push_back({"Transfer-Encoding", "chunked"});
  if (!keep_alive_) headers.push_back({"Connection", "close"});
  out_ += head_text(fmt::format("HTTP/1.1 {} {}", status, reason), headers);
}

void ClientConnection::send(std::string_view payload) {
  if (payload.empty()) return;
  if (answer_body_.type == Framing::Type::kChunked) {
    out_ += chunk_text(payload);
  } else {
    out_ += payload;
  }
  flush();
}

void ClientConnection::end() {
  if (answer_body_.type == Framing::Type::kChunked) out_ += kLastChunk;
  ended_ = true;
  if (!body_.done()) keep_alive_ = false;
  if (keep_alive_) {
    state_ = State::kHead;
    phase_began_ = last_progress_ = poller_.now();
    begun_ = false;
  }
  flush();
  if (state_ == State::kHead) process();
  if (state_ != State::kClosed) update();
}

void ClientConnection::flush() {
  const bool was_full = is_full();
  const std::size_t before = out_.size();
  if (!socket_.send(out_)) return close();
  if (out_.size() != before) last_progress_ = poller_.now();
  if (was_full && !is_full() && state_ == State::kHandled && !ended_) handler_.on_room(*this);
  if (state_ == State::kClosed) return;
  if (out_.empty() && is_last_answer() && state_ != State::kLingering && state_ != State::kClosed) {
    // Closing while the client still sends would destroy the answer on its way.
    socket_.end_sending();
    state_ = State::kLingering;
    phase_began_ = poller_.now();
    in_.clear();
  }
  if (state_ != State::kClosed) update();
}

// --- Waiting -------------------------------------------------------------------------------------

bool ClientConnection::wants_input() const {
  switch (state_) {
    case State::kLingering:
      return true;
    case State::kHead:
    case State::kBody:
      return !is_last_answer();
    case State::kHandled:
      return !body_.done() && !is_last_answer() && payload_.size() < limits::kGateUnsentMax;
    case State::kClosed:
      return false;
  }
  return false;
}

std::optional<Instant> ClientConnection::deadline() const {
  if (!out_.empty()) return last_progress_ + limits::kGateBodyTime;
  if (socket_.is_in_handshake()) return phase_began_ + limits::kGateHeadTime;
  switch (state_) {
    case State::kHead:
      return phase_began_ + (in_.empty() ? limits::kGateIdleMax : limits::kGateHeadTime);
    case State::kBody:
      return phase_began_ + limits::kGateBodyTime;
    case State::kHandled:
      if (wants_input()) return last_progress_ + limits::kGateBodyTime;
      return std::nullopt;
    case State::kLingering:
      return phase_began_ + kLingerTime;
    case State::kClosed:
      return std::nullopt;
  }
  return std::nullopt;
}

void ClientConnection::update() {
  std::uint32_t events = 0;
  if (wants_input()) events |= EPOLLIN;
  if ((!out_.empty() && !socket_.is_in_handshake()) || socket_.has_output()) events |= EPOLLOUT;
  if (state_ == State::kHandled && !silent_ && body_.done()) events |= EPOLLRDHUP;
  poller_.set_events(key_, socket_.fd(), events);
  poller_.set_deadline(key_, deadline());
}

void ClientConnection::on_deadline() {
  close();
}

void ClientConnection::cut() {
  close();
}

void ClientConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  poller_.set_events(key_, -1, 0);
  poller_.set_deadline(key_, std::nullopt);
  socket_.close();
  handler_.on_closed(*this);
}

}  // namespace pawl::gate
