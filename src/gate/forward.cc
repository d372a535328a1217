#include "gate/forward.h"

#include <utility>

#include "gate/limits.h"

namespace pawl::gate {

using Progress = net::Socket::Progress;

Forward::Forward(RequestId id, ForwardRequest request, const Settings& settings, Poller& poller,
                 ForwardHandler& handler)
    : id_(id),
      settings_(settings),
      poller_(poller),
      key_(poller.add(*this)),
      handler_(handler),
      out_(std::move(request.bytes)),
      rest_(request.rest),
      request_complete_(request.rest.type == Framing::Type::kNone),
      is_head_(request.is_head),
      last_progress_(poller.now()) {}

Forward::~Forward() {
  poller_.forget(key_);
}

// --- Connecting ----------------------------------------------------------------------------------

void Forward::start() {
  last_progress_ = poller_.now();
  on_connected(socket_.start(settings_.endpoints[endpoint_]));
}

void Forward::on_connected(Progress progress) {
  while (progress == Progress::kFailed) {
    why_ = settings_.endpoints[endpoint_].name + ": " + socket_.error();
    poller_.set_events(key_, -1, 0);  // The next descriptor may have the same number.
    if (++endpoint_ == settings_.endpoints.size()) return end(Outcome::kNotSent, why_);
    last_progress_ = poller_.now();
    progress = socket_.start(settings_.endpoints[endpoint_]);
  }
  if (progress == Progress::kOpen) {
    last_progress_ = poller_.now();
    return flush();
  }
  update();
}

// --- Sending -------------------------------------------------------------------------------------

bool Forward::is_full() const {
  return out_.size() >= limits::kGateUnsentMax;
}

void Forward::send_body(std::string_view payload, bool is_end) {
  if (request_complete_ || over_) return;
  if (rest_.type == Framing::Type::kChunked) {
    if (!payload.empty()) out_ += chunk_text(payload);
    if (is_end) out_ += kLastChunk;
  } else {
    out_ += payload;
  }
  request_complete_ = is_end;
  if (socket_.is_open()) flush();
}

void Forward::flush() {
  const std::size_t before = out_.size();
  const bool lost = !socket_.send(out_);
  if (out_.size() != before) {
    any_sent_ = true;
    last_progress_ = poller_.now();
  }
  // An upstream that has answered and closed need not take the rest; receive() finds out.
  if (lost) out_.clear();
  if (!request_complete_ && !is_full()) handler_.on_forward_room(*this);
  if (!over_) update();
}

// --- Receiving -----------------------------------------------------------------------------------

void Forward::on_events(std::uint32_t events) {
  if (over_) return;
  if (socket_.is_connecting()) return on_connected(socket_.continue_connect());
  if ((events & EPOLLOUT) != 0) flush();
  if (!over_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
  if (!over_) update();
}

void Forward::receive() {
  std::string why;
  const std::size_t before = in_.size();
  const bool open = socket_.receive(in_, why);
  if (in_.size() != before) last_progress_ = poller_.now();
  if (!process() || open) return;
  if (head_here_ && answer_.ends_with_connection() && why == "the connection was closed")
    return end(Outcome::kAnswered, "");
  fail(head_here_ ? "the answer is not complete: " + why : why);
}

bool Forward::process() {
  while (!head_here_) {
    const auto head_size = head_end(in_);
    if (in_.size() > limits::kGateHeadMax && (!head_size || *head_size > limits::kGateHeadMax)) {
      fail("the head of the answer is too large");
      return false;
    }
    if (!head_size) return true;
    const auto head = parse_response(std::string_view(in_).substr(0, *head_size), is_head_);
    if (!head || head->status == 101) {
      fail("the answer cannot be read: " + (head ? "it is an upgrade" : head.error().detail));
      return false;
    }
    in_.erase(0, *head_size);
    if (head->status < 200) continue;
    head_here_ = true;
    answer_ = BodyReader(head->body, BodyReader::Reads::kResponse);
    handler_.on_answer_head(*this, *head);
    if (over_) return false;
  }
  std::string payload;
  const auto read = answer_.read(in_, payload);
  if (!payload.empty()) handler_.on_answer_body(*this, payload);
  if (over_) return false;
  if (!read) {
    fail("the answer cannot be read: " + read.error().detail);
    return false;
  }
  if (answer_.done()) end(Outcome::kAnswered, "");
  return !over_;
}

void Forward::pause() {
  paused_ = true;
  update();
}

void Forward::resume() {
  if (!paused_) return;
  paused_ = false;
  last_progress_ = poller_.now();
  if (!over_) update();
}

// --- Waiting and ending --------------------------------------------------------------------------

void Forward::wait_until(Instant at) {
  until_ = at;
  update();
}

void Forward::update() {
  if (over_) return;
  const bool connecting = socket_.is_connecting();
  const pollfd interest = socket_.interest(!out_.empty());
  std::uint32_t events = 0;
  if (!paused_ || connecting) events |= EPOLLIN;
  if ((interest.events & POLLOUT) != 0) events |= EPOLLOUT;
  poller_.set_events(key_, socket_.fd(), events);
  if (connecting) {
    poller_.set_deadline(key_, last_progress_ + limits::kGateConnectTime);
  } else if (until_) {
    poller_.set_deadline(key_, until_);
  } else if (paused_) {
    poller_.set_deadline(key_, std::nullopt);  // The client has a time limit of its own.
  } else {
    poller_.set_deadline(key_, last_progress_ + settings_.timeout);
  }
}

void Forward::on_deadline() {
  if (socket_.is_connecting()) {
    socket_.time_out();
    return on_connected(Progress::kFailed);
  }
  if (until_) return fail("the upstream has not answered");
  handler_.on_late(*this);
}

void Forward::fail(const std::string& why) {
  end(any_sent_ ? Outcome::kUnknown : Outcome::kNotSent, why);
}

void Forward::end(Outcome outcome, const std::string& why) {
  if (over_) return;
  over_ = true;
  poller_.set_events(key_, -1, 0);
  poller_.set_deadline(key_, std::nullopt);
  socket_.close();
  handler_.on_end(*this, outcome, why);
}

}  // namespace pawl::gate
