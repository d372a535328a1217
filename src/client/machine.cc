#include "client/machine.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "client/acquire_flow.h"
#include "client/lease_flows.h"
#include "client/observe_flow.h"
#include "client/request_id.h"
#include "wire/command_writer.h"
#include "wire/error_code.h"

namespace pawl::client {
namespace {

// What the machine sends for itself; no call has these numbers.
constexpr CallId kGreeting{0};
constexpr CallId kProbe{~std::uint64_t{0}};

constexpr Millis kRefusalPatience{5'000};  // Several times the delay of pawld's refusal.

bool refuses_us(wire::ErrorCode code) {
  return code == wire::ErrorCode::kNoAuth || code == wire::ErrorCode::kWrongPass ||
         code == wire::ErrorCode::kNoPerm;
}

bool is_pawld(const wire::Value& greeting) {
  const wire::Value* server = greeting.find("server");
  return server != nullptr && server->as_text() == "pawl";
}

// Enough of a stranger's answer to recognise it by.
std::string summary(const wire::Value& value) {
  constexpr std::size_t kEnough = 80;
  const std::string text = wire::to_string(value);
  return text.size() <= kEnough ? text : text.substr(0, kEnough) + "…";
}

}  // namespace

Machine::Machine(Random& random, MachineOptions options)
    : random_(random), options_(std::move(options)) {}
Machine::~Machine() = default;

// --- Calls ---------------------------------------------------------------------------------------

CallId Machine::acquire(AcquireCall call, Instant now) {
  auto wrong = AcquireFlow::check(call);
  if (call.request.empty()) call.request = make_request_id(random_);
  if (!wrong && acquires_.contains(call.request)) {
    wrong = Error{Code::kInvalid, "this request id is being asked with already"};
  }
  if (wrong) {
    const CallId id = next_call();
    completions_.push_back({id, Result<Held>(*wrong), ++order_});
    return id;
  }
  auto flow = std::make_unique<AcquireFlow>(std::move(call));
  const std::string_view request = *flow->request();
  const CallId id = start(std::move(flow));
  acquires_.emplace(request, id);
  pump(now);
  return id;
}

CallId Machine::renew(const RenewCall& call, Instant now) {
  const CallId id = start(std::make_unique<RenewFlow>(call));
  pump(now);
  return id;
}

CallId Machine::renew_many(RenewManyCall call, Instant now) {
  const CallId id = start(std::make_unique<RenewManyFlow>(std::move(call)));
  pump(now);
  return id;
}

CallId Machine::release(const ReleaseCall& call, Instant now) {
  const CallId id = start(std::make_unique<ReleaseFlow>(call, now));
  pump(now);
  return id;
}

CallId Machine::command(CommandCall call, Instant now) {
  const CallId id = start(std::make_unique<CommandFlow>(std::move(call)));
  pump(now);
  return id;
}

CallId Machine::observe(ObserveCall call, Instant now) {
  const CallId id = next_call();
  start(id, std::make_unique<ObserveFlow>(id, std::move(call), observers_));
  pump(now);
  return id;
}

void Machine::cancel(CallId call, Instant now) {
  const auto found = flows_.find(call);
  if (found == flows_.end() || found->second->told()) return;
  found->second->cancel(now);
  settle(call, *found->second);
  pump(now);
}

CallId Machine::start(std::unique_ptr<Flow> flow) {
  const CallId id = next_call();
  start(id, std::move(flow));
  return id;
}

void Machine::start(CallId id, std::unique_ptr<Flow> flow) {
  agenda_.move(id, flow->planned(), flow->next_timer());
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
    settle(id, *flow);
  }
}

// --- The connection ------------------------------------------------------------------------------

void Machine::connected(Instant now, std::string peer) {
  PAWL_ASSERT(link_ == Link::kDown);
  peer_ = peer.empty() ? "the server" : std::move(peer);
  link_ = Link::kGreeting;
  decoder_.emplace();
  // Nothing is sent behind the greeting before it is answered: the server may be something else
  // than pawld.
  const Auth& auth = options_.auth;
  if (auth.user.empty()) {
    wire::append_command(output_, {"HELLO", "3", "SETNAME", options_.name});
  } else {
    wire::append_command(output_,
                         {"HELLO", "3", "AUTH", auth.user, auth.secret, "SETNAME", options_.name});
  }
  in_flight_.push_back({kGreeting, now});
}

void Machine::disconnected(std::string_view why, Instant now) {
  if (link_ != Link::kBroken) trouble_ = why;  // Else we hung up ourselves, and know better why.
  link_ = Link::kDown;
  in_flight_.clear();
  output_.clear();
  unread_.clear();
  decoder_.reset();
  const Millis doubled = backoff_ == Millis(0) ? options_.backoff_min : backoff_ * 2;
  backoff_ = std::min({doubled, options_.backoff_max, std::max(patience_, options_.backoff_min)});
  // Jitter: those who lost the same pawld must not all come back in the same millisecond.
  const auto half = static_cast<std::uint64_t>(Nanos(backoff_).count() / 2);
  connect_at_ = now + Nanos(half + random_.below(half + 1));
  for_each_flow([&](Flow& flow) { flow.cut(now); });
}

void Machine::unreachable() {
  for_each_flow([&](Flow& flow) {
    if (!flow.may_have_happened()) flow.refuse({Code::kUnavailable, trouble_});
  });
}

void Machine::break_link(std::string why) {
  if (link_ == Link::kBroken || link_ == Link::kDown) return;
  link_ = Link::kBroken;
  trouble_ = std::move(why);
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
  if (link_ == Link::kDown || link_ == Link::kBroken) return;
  heard_ = now;
  unread_.append(bytes);
  std::size_t taken = 0;
  while (link_ != Link::kBroken) {
    wire::DecodedReply reply = decoder_->decode(std::string_view(unread_).substr(taken));
    taken += reply.consumed;
    if (reply.status == wire::DecodeStatus::kNeedMore) break;
    if (reply.status != wire::DecodeStatus::kComplete) {
      const std::string why = "what the other end sent is not RESP: " + std::string(reply.message);
      // As a greeting it is a stranger's, a web server's perhaps, and will be the same next time.
      link_ == Link::kGreeting ? turn_away({Code::kUnavailable, why}) : break_link(why);
      break;
    }
    take_value(reply.value, now);
  }
  unread_.erase(0, taken);
  pump(now);
}

void Machine::take_value(const wire::Value& value, Instant now) {
  if (value.is_push()) return take_push(value, now);
  if (value.is_error() && wire::is_farewell(value.text)) return break_link(value.text);
  if (in_flight_.empty()) return break_link("an answer came that nobody asked for");
  const CallId call = in_flight_.front().call;
  in_flight_.pop_front();
  if (call == kGreeting) return take_greeting(value);
  const auto found = flows_.find(call);
  if (found == flows_.end()) return;  // A probe, or its caller has given up.
  found->second->reply(value, now);
  settle(call, *found->second);
}

void Machine::take_push(const wire::Value& push, Instant now) {
  if (const auto event = wire::read_event(push)) return observers_.tell(*event, ++order_);
  const auto ended = wire::read_wait_push(push);
  if (!ended) return;
  const auto found = acquires_.find(ended->request);
  if (found == acquires_.end()) return;
  const CallId call = found->second;
  Flow& flow = *flows_.at(call);
  flow.pushed(*ended, now);
  settle(call, flow);
}

void Machine::take_greeting(const wire::Value& value) {
  const auto code = error_code(value);
  // A full pawld keeps connections that may only renew and release. Each call hears for itself what
  // it may do.
  if (is_pawld(value) || code == wire::ErrorCode::kBusy) {
    link_ = Link::kReady;
    greeted_ = true;
    backoff_ = Millis(0);
    trouble_.clear();
    return;
  }
  if (code == wire::ErrorCode::kLoading) return break_link(value.text);
  if (!options_.auth.user.empty() && value.is_error() && value.text.starts_with("ERR AUTH")) {
    return turn_away(
        {Code::kDenied,
         "this pawld knows no users (it has no auth_file), but credentials were sent"});
  }
  if (value.is_error() && value.text.find(wire::kPortSpeaksTls) != std::string::npos)
    return turn_away({Code::kUnavailable, peer_ + std::string(kSpeaksTls) + "tls://" + peer_});
  const Error error =
      code && refuses_us(*code)
          ? wire::error_from_line(value.text)
          : Error{Code::kUnavailable, peer_ + ": not a pawld; it answered " + summary(value)};
  turn_away(error);
}

// There is no pawld here for us: no call has a chance.
void Machine::turn_away(const Error& error) {
  break_link(error.detail);
  for_each_flow([&](Flow& flow) { flow.refuse(error); });
}

// --- Turning the crank ---------------------------------------------------------------------------

void Machine::timer(Instant now) {
  if (silent(now)) break_link("no answer for " + std::to_string(answer_timeout().count()) + " ms");
  for (const CallId call : agenda_.due(now)) {
    Flow& flow = *flows_.at(call);
    wake(flow, now);
    settle(call, flow);
  }
  pump(now);
  if (now >= probe_at()) probe(now);
}

void Machine::wake(Flow& flow, Instant now) {
  if (flow.gives_up_at(now)) flow.abandon(now, trouble_);
  if (flow.lingers_past(now)) flow.stop();
  flow.wake(now);
}

void Machine::pump(Instant now) {
  if (link_ != Link::kReady) return;
  std::vector<CallId> ready(ready_.begin(), ready_.end());
  ready_.clear();
  if (ready.size() > 1) {
    std::stable_sort(ready.begin(), ready.end(), [this](CallId a, CallId b) {
      return flows_.at(a)->turn() < flows_.at(b)->turn();
    });
  }
  for (const CallId id : ready) {
    flows_.at(id)->write(output_, now);
    in_flight_.push_back({id, now});
  }
}

// Passes on what the flow has to say after an input. May end it.
void Machine::settle(CallId call, Flow& flow) {
  if (auto outcome = flow.take_outcome())
    completions_.push_back({call, std::move(*outcome), ++order_});
  if (flow.wants_elsewhere()) break_link("this pawld is a standby");
  if (flow.state() == Flow::State::kReady) ready_.insert(call);
  agenda_.move(call, flow.planned(), flow.finished() ? kNever : flow.next_timer());
  if (!flow.finished()) return;
  ready_.erase(call);
  if (const std::string* request = flow.request()) acquires_.erase(*request);
  flows_.erase(call);
}

// A wrong secret is answered late, on purpose. Until credentials have been right once, giving up
// earlier would be to guess again and again, and never to hear why.
Millis Machine::answer_timeout() const {
  const Millis usual = std::min(options_.answer_timeout, patience_);
  const bool unproven = link_ == Link::kGreeting && !greeted_ && !options_.auth.user.empty();
  return unproven ? std::max(usual, kRefusalPatience) : usual;
}

bool Machine::silent(Instant now) const {
  return !in_flight_.empty() && now - in_flight_.front().at >= answer_timeout();
}

// A wait hears nothing for as long as it lasts. Without a probe, a pawld that vanished without a
// word would be waited for all that time.
Instant Machine::probe_at() const {
  const bool only_waits = link_ == Link::kReady && in_flight_.empty() && !flows_.empty();
  return only_waits ? heard_ + options_.probe_after : kNever;
}

void Machine::probe(Instant now) {
  wire::append_command(output_, {"PING"});
  in_flight_.push_back({kProbe, now});
}

Instant Machine::next_timer() const {
  Instant next = std::min(probe_at(), agenda_.next());
  if (link_ == Link::kDown && !flows_.empty()) next = std::min(next, connect_at_);
  if (!in_flight_.empty() && link_ != Link::kBroken) {
    next = std::min(next, in_flight_.front().at + answer_timeout());
  }
  return next;
}

}  // namespace pawl::client
