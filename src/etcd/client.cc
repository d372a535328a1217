#include "etcd/client.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace pawl::etcd {
namespace {

constexpr Instant kNever = Instant::max();

}  // namespace

const Client::Traits& Client::traits(Kind kind) {
  static constexpr Traits kTraits[] = {
      {"/etcdserverpb.KV/Txn", true, true, true, true},
      {"/etcdserverpb.KV/Txn", false, true, true, false},
      {"/etcdserverpb.KV/Range", true, true, true, true},
      {"", true, true, true, false},
      {"/etcdserverpb.KV/Compact", false, true, true, false},
      {"/etcdserverpb.Watch/Watch", false, true, true, false},
      {"/etcdserverpb.Maintenance/Status", false, false, false, false},
      // Hashing a password is dear on purpose: one endpoint at a time.
      {"/etcdserverpb.Auth/Authenticate", true, false, true, false},
  };
  return kTraits[static_cast<std::size_t>(kind)];
}

Client::Client(ClientOptions options, Network& network)
    : options_(std::move(options)),
      network_(network),
      token_state_(options_.user.empty() ? Token::kUnused : Token::kNeeded) {
  PAWL_ASSERT(!options_.endpoints.empty());
  for (const std::string& name : options_.endpoints) links_.emplace_back().name = name;
}

Client::~Client() = default;

// --- Calls ---------------------------------------------------------------------------------------

CallId Client::add(Kind kind, std::string request) {
  const CallId id{++last_call_};
  calls_.emplace(
      id, Call{.kind = kind, .request = std::move(request), .attempt_time = options_.attempt_time});
  return id;
}

CallId Client::add_bounded(Kind kind, std::string request) {
  PAWL_ASSERT(calls_.size() < limits::kEtcdCallsMax);
  PAWL_ASSERT(request.size() <= limits::kEtcdRequestMax);
  return add(kind, std::move(request));
}

CallId Client::transact(std::string request, std::optional<Nanos> attempt_time) {
  const CallId id = add_bounded(Kind::kTxn, std::move(request));
  if (attempt_time) calls_.at(id).attempt_time = *attempt_time;
  return id;
}

CallId Client::transact_once(std::string request, std::optional<Nanos> attempt_time) {
  const CallId id = add_bounded(Kind::kTxnOnce, std::move(request));
  if (attempt_time) calls_.at(id).attempt_time = *attempt_time;
  return id;
}

CallId Client::ask(std::string path, std::string request) {
  const CallId id = add_bounded(Kind::kAsk, std::move(request));
  calls_.at(id).path = std::move(path);
  return id;
}

CallId Client::range(const RangeRequest& request, std::optional<Nanos> attempt_time) {
  const CallId id = add_bounded(Kind::kRange, encode(request));
  if (attempt_time) calls_.at(id).attempt_time = *attempt_time;
  return id;
}

CallId Client::compact(std::int64_t revision) {
  return add_bounded(Kind::kCompact, encode(CompactionRequest{revision}));
}

CallId Client::watch(const WatchCreateRequest& request) {
  return add_bounded(Kind::kWatch, encode(request));
}

void Client::ask_progress(CallId watch) {
  const auto found = calls_.find(watch);
  if (found == calls_.end() || found->second.attempts.empty()) return;
  const Attempt& attempt = found->second.attempts.back();
  links_[attempt.endpoint].http2->send(attempt.stream, encode_watch_progress());
}

bool Client::was_sent(CallId call) const {
  const auto found = calls_.find(call);
  return found != calls_.end() && found->second.sends.count > 0;
}

void Client::cancel(CallId call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  end_attempts(found->second);
  calls_.erase(found);
}

std::vector<Client::Attempt>::iterator Client::Call::attempt_at(std::size_t endpoint) {
  return std::find_if(attempts.begin(), attempts.end(),
                      [&](const Attempt& attempt) { return attempt.endpoint == endpoint; });
}

// The answers of these are not of interest any more.
void Client::end_attempts(Call& call) {
  for (const Attempt& attempt : std::exchange(call.attempts, {})) {
    Link& link = links_[attempt.endpoint];
    link.http2->cancel(attempt.stream);
    link.calls.erase(attempt.stream);
  }
}

// --- Connections ---------------------------------------------------------------------------------

void Client::open(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  link.state = Link::State::kConnecting;
  link.due = now + options_.connect_time;
  network_.connect(endpoint);
}

void Client::on_connected(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  if (link.state != Link::State::kConnecting) return;
  link.state = Link::State::kGreeting;
  link.http2 = std::make_unique<Http2Connection>(
      Http2Connection::Options{.authority = link.name, .tls = options_.tls});
  link.heard = now;
  // The endpoint is used once it has answered: a kernel accepts connections for a process that is
  // stopped. The answer also says whether it belongs to the same cluster.
  ask_status(endpoint, now);
}

void Client::on_received(std::size_t endpoint, std::string_view bytes, Instant now) {
  Link& link = links_[endpoint];
  if (!link.http2) return;
  link.heard = now;
  const bool alive = link.http2->receive(bytes);
  take_call_events(endpoint, now);
  if (!link.http2) return;  // One of the answers has ended the connection.
  if (!alive) drop(endpoint, link.http2->error(), now);
}

void Client::on_closed(std::size_t endpoint, const std::string& why, Instant now) {
  if (links_[endpoint].state != Link::State::kClosed) drop(endpoint, why, now);
}

// Closes the connection; its calls end without an answer.
void Client::drop(std::size_t endpoint, std::string why, Instant now) {
  Link& link = links_[endpoint];
  network_.close(endpoint);
  // Attempts to connect that fail in the same way are reported once.
  if (link.state == Link::State::kReady || link.error != why) note_trouble(endpoint, why);
  link.state = Link::State::kClosed;
  link.due = now + options_.reconnect_pause;
  link.error = why;
  link.status.reset();
  link.suspect = false;
  if (link.http2) {
    link.http2->end(why);
    take_call_events(endpoint, now);
  }
  link.http2.reset();
  PAWL_ASSERT(link.calls.empty());
  link.asks_status = false;
  ask_status_soon(now);
}

bool Client::is_usable(const Link& link) const {
  return link.state == Link::State::kReady && link.http2->accepts_calls();
}

void Client::check_link(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  switch (link.state) {
    case Link::State::kClosed:
      if (now >= link.due) open(endpoint, now);
      return;
    case Link::State::kConnecting:
    case Link::State::kGreeting:
      if (now >= link.due) drop(endpoint, "no answer from etcd within the time to connect", now);
      return;
    case Link::State::kReady:
      if (now >= status_at(link) && !link.asks_status && link.http2->accepts_calls())
        ask_status(endpoint, now);
      return;
  }
}

// An endpoint that owes an answer and is silent is asked earlier. It answers this at once, however
// long the other answer takes, unless it is gone: then the connection is closed.
Instant Client::status_at(const Link& link) const {
  Instant owed = kNever;  // Since then.
  for (const auto& [stream, id] : link.calls) {
    if (calls_.at(id).kind == Kind::kWatch) continue;
    for (const Attempt& attempt : calls_.at(id).attempts) {
      if (attempt.stream == stream && &links_[attempt.endpoint] == &link)
        owed = std::min(owed, attempt.sent);
    }
  }
  if (owed == kNever) return link.status_due;
  return std::min(link.status_due, std::max(owed, link.heard) + options_.silence_max / 2);
}

void Client::ask_status(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  link.asks_status = true;
  link.status_due = now + options_.status_interval;
  const auto call = calls_.find(add(Kind::kStatus, encode_status_request()));
  call->second.attempt_time = options_.silence_max;
  send_call(call, endpoint, now);
}

void Client::ask_status_soon(Instant now) {
  for (Link& link : links_) link.status_due = std::min(link.status_due, now + kStatusAfterTrouble);
}

void Client::take_call_events(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  for (CallEvent& event : link.http2->take_events()) {
    const auto number = link.calls.find(event.stream);
    if (number == link.calls.end()) continue;  // It was cancelled.
    const auto call = calls_.find(number->second);
    PAWL_ASSERT(call != calls_.end());
    if (event.kind == CallEvent::Kind::kMessage) {
      on_message(call, endpoint, std::move(event.message), now);
    } else {
      on_ended(call, endpoint, event.status, now);
    }
    if (!link.http2) return;
  }
}

// --- Sending -------------------------------------------------------------------------------------

bool Client::waits_for_token(const Call& call) const {
  return traits(call.kind).needs_token &&
         (token_state_ == Token::kNeeded || token_state_ == Token::kPending);
}

// The leader, if it answers; else the endpoint that answered last.
std::size_t Client::preferred() const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    if (is_usable(link) && !link.suspect && link.status && link.status->is_leader()) return i;
  }
  return last_good_;
}

std::optional<std::size_t> Client::first_usable_from(std::size_t start) const {
  for (const bool suspects : {false, true}) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::size_t endpoint = (start + i) % links_.size();
      if (is_usable(links_[endpoint]) && links_[endpoint].suspect == suspects) return endpoint;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> Client::choose(const Call& call) const {
  if (call.kind == Kind::kWatch) return first_usable_from(next_watch_);
  if (!call.last_endpoint) return first_usable_from(preferred());
  // Never the same again while there is another, and none that may still answer.
  const std::size_t next = *call.last_endpoint + 1;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::size_t endpoint = (next + i) % links_.size();
    const bool waits = std::any_of(call.attempts.begin(), call.attempts.end(),
                                   [&](const Attempt& a) { return a.endpoint == endpoint; });
    if (!waits && is_usable(links_[endpoint])) return endpoint;
  }
  return std::nullopt;
}

void Client::send_call(Calls::iterator at, std::size_t endpoint, Instant now) {
  auto& [id, call] = *at;
  Link& link = links_[endpoint];
  const Traits& kind = traits(call.kind);
  const bool is_watch = call.kind == Kind::kWatch;
  const Nanos patience =
      kind.stays ? std::max(call.attempt_time, kAttemptsPatience * options_.attempt_time)
                 : call.attempt_time;
  CallRequest request{.path = call.kind == Kind::kAsk ? call.path : std::string(kind.path),
                      .message = call.request,
                      .time = is_watch ? Nanos(0) : patience,
                      .stays_open = is_watch};
  if (kind.needs_leader) request.metadata.emplace_back("hasleader", "true");
  if (!token_.empty() && call.kind != Kind::kAuthenticate)
    request.metadata.emplace_back("token", token_);
  const auto stream = link.http2->start(request);
  PAWL_ASSERT(stream.has_value());
  link.calls.emplace(*stream, id);
  if (call.sends.count++ == 0) call.sends.first = now;
  call.last_endpoint = endpoint;
  call.due = false;
  call.attempts.push_back({.endpoint = endpoint,
                           .stream = *stream,
                           .sent = now,
                           .resend = now + call.attempt_time,
                           .deadline = now + patience,
                           .revision_floor = revision_,
                           .token_number = token_number_});
  if (is_watch) next_watch_ = (endpoint + 1) % links_.size();
}

bool Client::is_silent(const Attempt& attempt, Instant now) const {
  return now - std::max(links_[attempt.endpoint].heard, attempt.sent) >= options_.silence_max;
}

// Attempts whose time is over: what etcd did is unknown. May end the call, or others.
void Client::check_attempts(Calls::iterator at, Instant now) {
  const CallId id = at->first;
  Call& call = at->second;
  if (!call.due && !call.attempts.empty()) {
    const Attempt newest = call.attempts.back();
    if (traits(call.kind).stays && now >= newest.resend) {
      send_elsewhere(call, now);
      if (is_silent(newest, now)) return drop(newest.endpoint, "no answer in time", now);
    }
  }
  std::vector<std::size_t> late;
  for (const Attempt& attempt : call.attempts) {
    if (now >= attempt.deadline) late.push_back(attempt.endpoint);
  }
  for (const std::size_t endpoint : late) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    give_up(found, endpoint, now);
  }
}

// The newest attempt is not answered yet: it may be, but another endpoint is asked, too.
void Client::send_elsewhere(Call& call, Instant now) {
  const Attempt& newest = call.attempts.back();
  links_[newest.endpoint].suspect = true;
  note_trouble(newest.endpoint, "no answer in time");
  ask_status_soon(now);
  call.due = true;
  call.not_before = std::max(now, newest.sent + options_.resend_pause);
}

void Client::give_up(Calls::iterator at, std::size_t endpoint, Instant now) {
  const auto found = at->second.attempt_at(endpoint);
  if (found == at->second.attempts.end()) return;  // It has ended with its connection.
  const bool silent = is_silent(*found, now);
  Link& link = links_[endpoint];
  link.http2->cancel(found->stream);
  on_ended(at, endpoint, {std::nullopt, "no answer in time"}, now);
  if (silent && link.http2) drop(endpoint, "no answer in time", now);
}

void Client::pump(Instant now) {
  pumped_at_ = now;
  // A connection that ends while it sends leaves calls that can be sent to another one at once.
  bool dropped = true;
  while (std::exchange(dropped, false)) {
    send_what_is_due(now);
    for (std::size_t i = 0; i < links_.size(); ++i) dropped |= !flush(i, now);
  }
}

void Client::send_what_is_due(Instant now) {
  for (std::size_t i = 0; i < links_.size(); ++i) check_link(i, now);
  if (token_state_ == Token::kNeeded) {
    for (const auto& [id, call] : calls_) {
      if (!waits_for_token(call)) continue;
      token_state_ = Token::kPending;
      const CallId login =
          add(Kind::kAuthenticate, encode(AuthenticateRequest{options_.user, options_.password}));
      calls_.at(login).attempt_time = options_.authenticate_time.value_or(options_.attempt_time);
      break;
    }
  }
  // A call may end others, by dropping their connection.
  std::vector<CallId> ids;
  for (const auto& [id, call] : calls_) ids.push_back(id);
  for (const CallId id : ids) {
    const auto at = calls_.find(id);
    if (at != calls_.end()) check_attempts(at, now);
  }
  for (const CallId id : ids) {
    const auto at = calls_.find(id);
    if (at == calls_.end() || !at->second.due || now < at->second.not_before ||
        waits_for_token(at->second))
      continue;
    if (const auto endpoint = choose(at->second)) send_call(at, *endpoint, now);
  }
}

// False if the connection has ended.
bool Client::flush(std::size_t endpoint, Instant now) {
  Link& link = links_[endpoint];
  if (!link.http2) return true;
  const std::string output = link.http2->take_output();
  if (!output.empty()) network_.send(endpoint, output);
  take_call_events(endpoint, now);
  if (!link.http2 || !link.http2->is_finished()) return link.http2 != nullptr;
  const std::string& why = link.http2->error();
  drop(endpoint, why.empty() ? "etcd has announced that it goes away" : why, now);
  return false;
}

Instant Client::deadline() const {
  Instant due = kNever;
  for (const Link& link : links_) {
    if (link.state != Link::State::kReady) {
      due = std::min(due, link.due);
    } else if (!link.asks_status && link.http2->accepts_calls()) {
      due = std::min(due, status_at(link));
    }
  }
  for (const auto& [id, call] : calls_) {
    // A call that could have been sent already waits for an endpoint or a token, not for the time.
    for (const Attempt& attempt : call.attempts) due = std::min(due, attempt.deadline);
    if (!call.due) {
      due = std::min(due, call.attempts.back().resend);
    } else if (call.not_before > pumped_at_) {
      due = std::min(due, call.not_before);
    }
  }
  return due;
}

// --- What is known -------------------------------------------------------------------------------

void Client::note_trouble(std::size_t endpoint, std::string text) {
  if (troubles_ == limits::kEtcdTroublesMax) return;
  troubles_ += 1;
  events_.emplace_back(Trouble{links_[endpoint].name, std::move(text)});
}

std::vector<Event> Client::take_events() {
  troubles_ = 0;
  return std::exchange(events_, {});
}

std::vector<AskDone> Client::take_asked() {
  return std::exchange(asked_, {});
}

std::vector<EndpointView> Client::endpoints() const {
  std::vector<EndpointView> views;
  for (const Link& link : links_)
    views.push_back({link.name, is_usable(link), link.error, link.status});
  return views;
}

}  // namespace pawl::etcd
