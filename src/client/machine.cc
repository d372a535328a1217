#include "client/machine.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "client/acquire_flow.h"
#include "client/lease_flows.h"
#include "wire/command_writer.h"
#include "wire/error_code.h"

namespace pawl::client {
namespace {

// Commands of the machine itself; no call has these ids.
constexpr CallId kHello{0};
constexpr CallId kProbe{~std::uint64_t{0}};

constexpr Millis kRefusalTimeout{5'000};  // Several times the delay of pawld's refusal.

bool refuses_us(wire::ErrorCode code) {
  return code == wire::ErrorCode::kNoAuth || code == wire::ErrorCode::kWrongPass ||
         code == wire::ErrorCode::kNoPerm;
}

bool is_pawld(const wire::Value& hello) {
  const wire::Value* server = hello.find("server");
  return server != nullptr && server->as_text() == "pawl";
}

// The beginning of an unexpected reply, enough to recognise the server.
std::string summary(const wire::Value& value) {
  constexpr std::size_t kEnough = 80;
  const std::string text = wire::to_string(value);
  return text.size() <= kEnough ? text : text.substr(0, kEnough) + "…";
}

constexpr std::string_view kRequestIdAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
// 6 bits each; the last one carries the 4 bits that are left of 64.
constexpr int kDigitsPerWord = 11;

}  // namespace

std::string make_request_id(Random& random) {
  std::string id;
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = random.next();
    for (int digit = 0; digit < kDigitsPerWord; ++digit, bits >>= 6)
      id.push_back(kRequestIdAlphabet[bits & 63]);
  }
  return id;
}

Machine::Machine(Random& random, MachineOptions options)
    : random_(random),
      options_(std::move(options)),
      nodes_(options_.nodes),
      backoff_(options_.backoff_min, options_.backoff_max) {}
Machine::~Machine() = default;

// --- Calls ---------------------------------------------------------------------------------------

CallId Machine::acquire(AcquireCall call, Instant now) {
  auto wrong = AcquireFlow::check(call);
  if (call.request.empty()) call.request = make_request_id(random_);
  if (!wrong && acquires_.contains(call.request)) {
    wrong = Error{Code::kInvalid, "a request with this id is already in flight"};
  }
  if (wrong) {
    const CallId id = next_call();
    completions_.push_back({id, Result<GrantedLease>(*wrong), ++order_});
    return id;
  }
  auto flow = std::make_unique<AcquireFlow>(std::move(call));
  const std::string_view request = *flow->request();
  const CallId id = start(std::move(flow));
  acquires_.emplace(request, id);
  send_ready(now);
  return id;
}

CallId Machine::renew(const RenewCall& call, Instant now) {
  const CallId id = start(std::make_unique<RenewFlow>(call));
  send_ready(now);
  return id;
}

CallId Machine::renew_many(RenewManyCall call, Instant now) {
  const CallId id = start(std::make_unique<RenewManyFlow>(std::move(call)));
  send_ready(now);
  return id;
}

CallId Machine::release(const ReleaseCall& call, Instant now) {
  const CallId id = start(std::make_unique<ReleaseFlow>(call, now));
  send_ready(now);
  return id;
}

CallId Machine::command(CommandCall call, Instant now) {
  const CallId id = start(std::make_unique<CommandFlow>(std::move(call)));
  send_ready(now);
  return id;
}

CallId Machine::observe(ObserveCall call, Instant now) {
  const CallId id = next_call();
  start(id, std::make_unique<ObserveFlow>(id, std::move(call), observers_));
  send_ready(now);
  return id;
}

void Machine::cancel(CallId call, Instant now) {
  const auto found = flows_.find(call);
  if (found == flows_.end() || found->second->completed()) return;
  found->second->cancel(now);
  collect_results(call, *found->second);
  send_ready(now);
}

CallId Machine::start(std::unique_ptr<Flow> flow) {
  const CallId id = next_call();
  start(id, std::move(flow));
  return id;
}

void Machine::start(CallId id, std::unique_ptr<Flow> flow) {
  timers_.schedule(id, flow->timer_slot(), flow->next_timer());
  flows_.emplace(id, std::move(flow));
  ready_.insert(id);
}

std::optional<std::uint64_t> Machine::position(CallId call) const {
  const auto found = flows_.find(call);
  return found == flows_.end() ? std::nullopt : found->second->position();
}

// Visits every flow, and settles it. Safe against flows that end meanwhile.
template <class Visit>
void Machine::for_each_flow(Visit visit) {
  for (auto at = flows_.begin(); at != flows_.end();) {
    const auto& [id, flow] = *at++;
    visit(*flow);
    collect_results(id, *flow);
  }
}

// --- The connection ------------------------------------------------------------------------------

void Machine::connected(Instant now, std::string peer) {
  PAWL_ASSERT(link_ == Link::kDown);
  peer_ = peer.empty() ? "the server" : std::move(peer);
  link_ = Link::kHandshake;
  decoder_.emplace();
  // Nothing follows HELLO before it is answered: the server may not be a pawld.
  const Auth& auth = options_.auth;
  if (auth.user.empty()) {
    wire::append_command(output_, {"HELLO", "3", "SETNAME", options_.name});
  } else {
    wire::append_command(output_,
                         {"HELLO", "3", "AUTH", auth.user, auth.secret, "SETNAME", options_.name});
  }
  in_flight_.push_back({kHello, now});
}

void Machine::disconnected(std::string_view why, Instant now) {
  if (link_ != Link::kClosing) last_error_ = why;  // Else we closed it and know the reason better.
  link_ = Link::kDown;
  overdue_ = false;
  leaving_.clear();
  in_flight_.clear();
  output_.clear();
  unread_.clear();
  decoder_.reset();
  round_is_over_ = choose_node() == Nodes::Next::kAfterPause;
  connect_at_ = round_is_over_ ? now + backoff_.next(random_, answer_timeout_max_) : now;
  for_each_flow([&](Flow& flow) { flow.on_disconnect(now); });
}

Nodes::Next Machine::choose_node() {
  const bool served = std::exchange(served_, false);
  if (const auto active = std::exchange(standby_, std::nullopt)) return nodes_.on_standby(*active);
  return served ? nodes_.on_lost() : nodes_.on_failed();
}

void Machine::all_addresses_failed() {
  for_each_flow([&](Flow& flow) {
    if (!flow.may_have_happened()) flow.refuse({Code::kUnavailable, last_error_});
  });
}

void Machine::drop_connection(std::string why) {
  if (link_ == Link::kClosing || link_ == Link::kDown) return;
  link_ = Link::kClosing;
  last_error_ = std::move(why);
  output_.clear();
}

bool Machine::wants_connection(Instant now) const {
  return link_ == Link::kDown && !flows_.empty() && now >= connect_at_;
}

std::string Machine::take_output() {
  return std::exchange(output_, {});
}

std::vector<Completion> Machine::take_completions() {
  return std::exchange(completions_, {});
}

void Machine::received(std::string_view bytes, Instant now) {
  if (link_ == Link::kDown || link_ == Link::kClosing) return;
  last_received_ = now;
  unread_.append(bytes);
  std::size_t taken = 0;
  while (link_ != Link::kClosing) {
    wire::DecodedReply reply = decoder_->decode(std::string_view(unread_).substr(taken));
    taken += reply.consumed;
    if (reply.status == wire::DecodeStatus::kNeedMore) break;
    if (reply.status != wire::DecodeStatus::kComplete) {
      const std::string why = "not RESP: " + std::string(reply.message);
      // In reply to HELLO it is another kind of server, such as a web server: retrying is no use.
      link_ == Link::kHandshake
          ? refuse_all_calls({Code::kUnavailable, peer_ + std::string(kNotPawld) + why})
          : drop_connection("protocol error: " + why);
      break;
    }
    on_value(reply.value, now);
  }
  unread_.erase(0, taken);
  send_ready(now);
}

void Machine::on_value(const wire::Value& value, Instant now) {
  if (value.is_push()) return on_push(value, now);
  if (value.is_error() && wire::is_closing_error(value.text)) return drop_connection(value.text);
  if (in_flight_.empty()) return drop_connection("protocol error: unexpected reply");
  const CallId call = in_flight_.front().call;
  in_flight_.pop_front();
  overdue_ = false;
  if (call == kHello) return on_hello_reply(value);
  const auto found = flows_.find(call);
  if (found == flows_.end()) return leave_when_answered();  // A probe, or the call was finished.
  Flow& flow = *found->second;
  flow.on_value(value, now);
  if (flow.state() != Flow::State::kPaused && !std::exchange(served_, true)) {
    // Only now: a standby greets as well.
    backoff_.reset();
    nodes_.on_served();
  }
  collect_results(call, flow);
  leave_when_answered();
}

void Machine::on_push(const wire::Value& push, Instant now) {
  if (const auto event = wire::read_event(push)) return observers_.on_event(*event, ++order_);
  const auto ended = wire::read_wait_push(push);
  if (!ended) return;
  const auto found = acquires_.find(ended->request);
  if (found == acquires_.end()) return;
  const CallId call = found->second;
  Flow& flow = *flows_.at(call);
  flow.on_push(*ended, now);
  collect_results(call, flow);
}

void Machine::on_hello_reply(const wire::Value& value) {
  const auto code = error_code(value);
  // A full pawld keeps connections that may only renew and release. The other calls are refused one
  // by one.
  if (is_pawld(value) || code == wire::ErrorCode::kBusy) {
    link_ = Link::kReady;
    reached_ = true;
    last_error_.clear();
    return;
  }
  if (code == wire::ErrorCode::kLoading) return drop_connection(value.text);
  if (!options_.auth.user.empty() && value.is_error() && value.text.starts_with("ERR AUTH")) {
    return refuse_all_calls(
        {Code::kDenied, "credentials were sent, but this pawld has no users (no auth_file)"});
  }
  if (value.is_error() && value.text.find(wire::kPortSpeaksTls) != std::string::npos)
    return refuse_all_calls(
        {Code::kUnavailable, peer_ + std::string(kSpeaksTls) + "tls://" + peer_});
  const Error error =
      code && refuses_us(*code)
          ? wire::error_from_line(value.text)
          : Error{Code::kUnavailable,
                  peer_ + std::string(kNotPawld) + "unexpected reply to HELLO: " + summary(value)};
  refuse_all_calls(error);
}

// This server will not serve us: every call ends now.
void Machine::refuse_all_calls(const Error& error) {
  drop_connection(error.detail);
  for_each_flow([&](Flow& flow) { flow.refuse(error); });
}

// --- Timers and sending --------------------------------------------------------------------------

void Machine::on_timer(Instant now) {
  if (reply_overdue(now)) on_overdue(now);
  for (const CallId call : timers_.due_by(now)) {
    Flow& flow = *flows_.at(call);
    wake(flow, now);
    collect_results(call, flow);
  }
  send_ready(now);
  if (now >= probe_at()) probe(now);
}

void Machine::wake(Flow& flow, Instant now) {
  if (flow.caller_timed_out(now)) flow.abandon(now, last_error_);
  if (flow.linger_expired(now)) flow.stop();
  flow.wake(now);
}

void Machine::send_ready(Instant now) {
  if (link_ != Link::kReady || !leaving_.empty()) return;
  std::vector<CallId> ready(ready_.begin(), ready_.end());
  ready_.clear();
  if (ready.size() > 1) {
    std::stable_sort(ready.begin(), ready.end(), [this](CallId a, CallId b) {
      return flows_.at(a)->send_order() < flows_.at(b)->send_order();
    });
  }
  for (const CallId id : ready) {
    flows_.at(id)->write(output_, now);
    in_flight_.push_back({id, now});
  }
}

// Takes the outcome and the new state of a flow after an input. Deletes it when it is finished.
void Machine::collect_results(CallId call, Flow& flow) {
  if (auto outcome = flow.take_outcome())
    completions_.push_back({call, std::move(*outcome), ++order_});
  if (const auto why = flow.take_hang_up()) on_put_off(*why);
  if (flow.state() == Flow::State::kReady) ready_.insert(call);
  timers_.schedule(call, flow.timer_slot(), flow.finished() ? kNever : flow.next_timer());
  if (!flow.finished()) return;
  ready_.erase(call);
  if (const std::string* request = flow.request()) acquires_.erase(*request);
  flows_.erase(call);
}

// The flow hangs up after a reply that meant "later".
void Machine::on_put_off(const std::string& reply) {
  if (link_ == Link::kClosing || link_ == Link::kDown) return;
  const std::string why = peer_ + ": " + reply;
  if (!reply.starts_with(wire::to_text(wire::ErrorCode::kReadOnly))) return drop_connection(why);
  standby_ = wire::active_in(reply).resp;
  // What was sent behind it is answered as well, and its answer says whether it was executed: the
  // standby may have become active in between.
  leaving_ = why;
  leave_when_answered();
}

void Machine::leave_when_answered() {
  if (!leaving_.empty() && in_flight_.empty()) drop_connection(leaving_);
}

// pawld delays its answer to a wrong secret on purpose. Until the credentials have been accepted
// once, a shorter timeout would try them again and again without ever receiving the refusal.
Millis Machine::answer_timeout() const {
  const Millis usual = std::min(options_.answer_timeout, answer_timeout_max_);
  const bool unverified = link_ == Link::kHandshake && !reached_ && !options_.auth.user.empty();
  return unverified ? std::max(usual, kRefusalTimeout) : usual;
}

bool Machine::reply_overdue(Instant now) const {
  return !in_flight_.empty() && now - in_flight_.front().at >= answer_timeout();
}

void Machine::on_overdue(Instant now) {
  const bool too_long = now - in_flight_.front().at >= options_.answer_timeout;
  overdue_ = options_.can_replace && link_ == Link::kReady && !acquires_.empty() && !too_long;
  if (overdue_) return;
  drop_connection("no answer for " + std::to_string(answer_timeout().count()) + " ms");
}

// Nothing arrives while calls only wait. Without a probe, a pawld that vanished silently would be
// noticed only at the end of the wait.
Instant Machine::probe_at() const {
  const bool only_waits = link_ == Link::kReady && in_flight_.empty() && !flows_.empty();
  return only_waits ? last_received_ + options_.probe_after : kNever;
}

void Machine::probe(Instant now) {
  wire::append_command(output_, {"PING"});
  in_flight_.push_back({kProbe, now});
}

Instant Machine::next_timer() const {
  Instant next = std::min(probe_at(), timers_.next_due());
  if (link_ == Link::kDown && !flows_.empty()) next = std::min(next, connect_at_);
  if (!in_flight_.empty() && link_ != Link::kClosing) {
    next = std::min(
        next, in_flight_.front().at + (overdue_ ? options_.answer_timeout : answer_timeout()));
  }
  return next;
}

}  // namespace pawl::client
