#include "gate/proxy.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/boot_clock.h"
#include "gate/limits.h"
#include "gate/token_headers.h"
#include "guard_contract/parse.h"
#include "server/listener.h"

namespace pawl::gate {

using http::Problem;
using http::Retry;

// A listening socket.
class Proxy::Acceptor final : public Watched {
 public:
  Acceptor(Proxy& proxy, UniqueFd socket, ClientConnection::Door door)
      : proxy_(proxy), socket_(std::move(socket)), door_(door), key_(proxy.poller_.add(*this)) {
    proxy_.poller_.set_events(key_, socket_.get(), EPOLLIN);
  }
  ~Acceptor() override { proxy_.poller_.forget(key_); }
  void on_events(std::uint32_t /*events*/) override { proxy_.accept(socket_.get(), door_); }
  void on_deadline() override {}

 private:
  Proxy& proxy_;
  const UniqueFd socket_;
  const ClientConnection::Door door_;
  const Poller::Key key_;
};

// A descriptor that becomes readable when something is to be done.
class Proxy::Signal final : public Watched {
 public:
  Signal(Poller& poller, int fd, std::function<void()> action)
      : poller_(poller), action_(std::move(action)), key_(poller.add(*this)) {
    poller_.set_events(key_, fd, EPOLLIN);
  }
  ~Signal() override { poller_.forget(key_); }
  void on_events(std::uint32_t /*events*/) override { action_(); }
  void on_deadline() override {}

 private:
  Poller& poller_;
  const std::function<void()> action_;
  const Poller::Key key_;
};

Proxy::Proxy(ProxySettings settings, MarkFile& marks, Log& log)
    : settings_(std::move(settings)),
      marks_(marks),
      log_(log),
      fences_(settings_.fence, settings_.resources_max),
      writer_(marks) {
  for (const auto& [name, mark] : marks_.marks()) {
    fences_.recover(name, mark);
    if (!mark.open) continue;
    log_.warning(
        fmt::format("{}: token {} was in use when the gate ended; a greater one waits until `pawl "
                    "gate settle {}`",
                    name, mark.token.value, name),
        {{"event", "open_mark"}, {"resource", name}, {"token", mark.token.value}});
  }
}

Proxy::~Proxy() = default;

void Proxy::listen(UniqueFd socket, ClientConnection::Door door) {
  acceptors_.push_back(std::make_unique<Acceptor>(*this, std::move(socket), door));
}

Result<void> Proxy::run(int stop_fd) {
  bool stop = false;
  auto stop_signal = std::make_unique<Signal>(poller_, stop_fd, [&] { stop = true; });
  const Signal written(poller_, writer_.fd(), [this] { on_marks_written(); });
  while (!stop && failure_) {
    poller_.turn(fences_.next_time());
    on_time();
    sweep();
  }
  stop_signal.reset();
  if (!failure_) return failure_;
  begin_stop();
  const Instant until = boot_now() + limits::kGateStopTime;
  while (failure_ && poller_.now() < until && (!forwards_.empty() || writer_.pending() > 0)) {
    poller_.turn(until);
    sweep();
  }
  return failure_;
}

void Proxy::begin_stop() {
  stopping_ = true;
  acceptors_.clear();
  std::vector<NamedFence*> fences;
  fences_.for_each([&](NamedFence& fence) { fences.push_back(&fence); });
  for (NamedFence* fence : fences) {
    fence->fence.stop(poller_.now(), actions_);
    act(*fence);
  }
  std::vector<ClientConnection*> idle;
  for (const auto& [id, client] : clients_) {
    client->close_after_answer();
    if (client->is_idle()) idle.push_back(client.get());
  }
  for (ClientConnection* client : idle) client->cut();
  sweep();
}

void Proxy::sweep() {
  ended_clients_.clear();
  ended_forwards_.clear();
}

// --- Clients -------------------------------------------------------------------------------------

void Proxy::accept(int listener, ClientConnection::Door door) {
  for (int i = 0; i < 64; ++i) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    if (clients_.size() >= settings_.connections_max && !make_room()) {
      ++counts_.refused_connections;
      continue;
    }
    const auto id = ++last_id_;
    std::string peer =
        door == ClientConnection::Door::kLocalAdmin ? "local" : server::peer_of(socket.get());
    const auto tls = door == ClientConnection::Door::kPublic ? settings_.tls : nullptr;
    clients_[id] = std::make_unique<ClientConnection>(id, ClientSocket(std::move(socket), tls),
                                                      std::move(peer), door, poller_, *this);
  }
}

// Closes a connection that is between two requests.
bool Proxy::make_room() {
  const auto idle = std::find_if(clients_.begin(), clients_.end(),
                                 [](const auto& each) { return each.second->is_idle(); });
  if (idle == clients_.end()) return false;
  idle->second->cut();
  return true;
}

std::optional<Problem> Proxy::on_head(ClientConnection& client) {
  Plan& plan = plans_[client.id()] = Plan{};
  if (client.door() != ClientConnection::Door::kPublic) return std::nullopt;
  if (stopping_) {
    client.close_after_answer();
    return Problem{.status = 503,
                   .code = "gate_stopping",
                   .title = "the gate is being stopped",
                   .detail = "nothing was forwarded; send the request again",
                   .retry = Retry::kLater};
  }
  return this->plan(client, plan);
}

// Which fence the request has to pass, if any.
std::optional<Problem> Proxy::plan(ClientConnection& client, Plan& plan) {
  const RequestHead& head = client.head();
  const bool read = is_read(head.method) && !names_other_method(head.headers);
  const std::size_t tokens = count_of(head.headers, kTokenHeader);
  plan.kind = read ? Kind::kRead : Kind::kWrite;
  if (read && tokens == 0) return std::nullopt;
  const auto text = only_value(head.headers, kTokenHeader);
  const auto token = text ? guard::parse_token(*text) : std::nullopt;
  if (tokens > 0 && !token) {
    ++counts_.decisions["malformed"];
    return Problem{.status = 400,
                   .code = "malformed_token",
                   .title = "the fencing token cannot be read",
                   .detail =
                       "send X-Fencing-Token once, as a number from 1 to 2^53 - 1 without sign, "
                       "spaces or leading zeros"};
  }
  const auto path = canonical_path(head.target);
  if (!path) {
    return Problem{
        .status = 400,
        .code = "ambiguous_path",
        .title = "the path has other spellings",
        .detail = fmt::format("which resource it is for is not certain: {}", path.error().detail)};
  }
  return plan_fenced(client, *path, token ? Token{*token} : Token{}, plan);
}

std::optional<Problem> Proxy::plan_fenced(ClientConnection& client, std::string_view path,
                                          Token token, Plan& plan) {
  std::optional<std::string> resource;
  for (const ResourcePattern& pattern : settings_.resources) {
    if (!resource) resource = pattern.match(path);
  }
  if (!resource) {
    if (plan.kind == Kind::kRead || settings_.pass_unmatched) return std::nullopt;
    return Problem{
        .status = 403,
        .code = "not_guarded",
        .title = "the gate guards no such resource",
        .detail = fmt::format("{} matches no --resource of the gate; nothing was forwarded", path)};
  }
  if (token.value == 0) {
    if (settings_.mode != GuardMode::kEnforce || settings_.allow_missing) {
      count(Verdict::kMissing);
      return std::nullopt;
    }
    ++counts_.decisions[std::string(pawl::to_text(Verdict::kMissing))];
    log_.warning(fmt::format("{}: refused {} from {}: no token", *resource, client.head().method,
                             client.peer()),
                 {{"event", "refused"},
                  {"resource", *resource},
                  {"verdict", "missing"},
                  {"peer", client.peer()}});
    return Problem{.status = 428,
                   .code = "missing_token",
                   .title = "this resource needs a fencing token",
                   .detail = fmt::format("acquire the lock of {} and send its token as "
                                         "X-Fencing-Token",
                                         *resource)};
  }
  // Only a valid token makes the gate remember a resource.
  const auto fence = fences_.find_or_add(*resource);
  if (!fence) {
    return Problem{.status = 503,
                   .code = "too_many_resources",
                   .title = "the gate can remember no more resources",
                   .detail = fence.error().detail,
                   .retry = Retry::kLater};
  }
  plan.fence = *fence;
  plan.token = token;
  if (settings_.mode == GuardMode::kEnforce && token < (*fence)->fence.max())
    return refusal(client, plan, Verdict::kStale, (*fence)->fence.max());
  return std::nullopt;
}

Problem Proxy::refusal(ClientConnection& client, const Plan& plan, Verdict verdict, Token max) {
  ++counts_.decisions[std::string(pawl::to_text(verdict))];
  const std::string& resource = plan.fence->name;
  log_.warning(fmt::format("{}: refused {} from {}: token {} is {}, the fence is {}", resource,
                           client.head().method, client.peer(), plan.token.value,
                           pawl::to_text(verdict), max.value),
               {{"event", "refused"},
                {"resource", resource},
                {"verdict", pawl::to_text(verdict)},
                {"token", plan.token.value},
                {"max", max.value},
                {"peer", client.peer()}});
  const bool stale = verdict == Verdict::kStale;
  return {.status = 412,
          .code = stale ? "stale_token" : "token_ahead",
          .title = stale ? "a newer holder has been here" : "the token is too far ahead",
          .detail = stale
                        ? fmt::format("token {} is older than {}; stop, and do not retry",
                                      plan.token.value, max.value)
                        : fmt::format("token {} is more than {} beyond {}; it is forged or corrupt",
                                      plan.token.value, settings_.fence.step_max, max.value),
          .headers = {max_header(max)},
          .more = {{"resource", resource}, {"token", plan.token.value}, {"max", max.value}}};
}

Problem Proxy::draining(const Plan& plan) {
  ++counts_.gave_up;
  const FenceView view = plan.fence->fence.view();
  const std::string& resource = plan.fence->name;
  std::string in_the_way;
  if (view.in_flight > 0) {
    const auto since =
        std::chrono::floor<Millis>(poller_.now() - view.oldest.value_or(poller_.now()));
    in_the_way = fmt::format(
        "{} forwarded under token {} not answered yet, the oldest for {} ms",
        view.in_flight == 1 ? "one request" : fmt::format("{} requests", view.in_flight),
        view.mark.token.value, since.count());
  }
  if (view.unknown > 0) {
    in_the_way += fmt::format(
        "{}the outcome of {} under token {} is not known; an operator can run `pawl gate settle "
        "{}`",
        in_the_way.empty() ? "" : "; ", view.unknown == 1 ? "a forward" : "some forwards",
        view.mark.token.value, resource);
  }
  if (in_the_way.empty()) in_the_way = "its mark is being written";
  return {.status = 503,
          .code = stopping_ ? "gate_stopping" : "fence_draining",
          .title = stopping_ ? "the gate is being stopped" : "lower tokens are still in flight",
          .detail = fmt::format("token {} was not forwarded: {}", plan.token.value, in_the_way),
          .retry = Retry::kLater,
          .headers = {max_header(plan.fence->fence.max()), {"Retry-After", "1"}},
          .more = {{"resource", resource},
                   {"token", plan.token.value},
                   {"open_token", view.mark.token.value},
                   {"in_flight", view.in_flight},
                   {"unknown", view.unknown}}};
}

void Proxy::on_request(ClientConnection& client) {
  if (client.door() != ClientConnection::Door::kPublic) return client.respond(administer(client));
  Plan& plan = plans_.at(client.id());
  plan.request = RequestId{++last_id_};
  requests_[plan.request] = &client;
  if (plan.fence == nullptr) return start_forward(client);
  NamedFence& fence = *plan.fence;
  fence.fence.arrive(plan.request, plan.token, plan.kind, poller_.now(), actions_);
  act(fence);
}

void Proxy::on_silent(ClientConnection& client) {
  // Nobody waits for it at the fence any more. A forward goes on.
  if (plans_.at(client.id()).forward == nullptr) client.cut();
}

void Proxy::on_closed(ClientConnection& client) {
  const auto found = plans_.find(client.id());
  if (found != plans_.end()) {
    const Plan plan = found->second;
    plans_.erase(found);
    requests_.erase(plan.request);
    if (plan.forward != nullptr) {
      detach(*plan.forward);
    } else if (plan.fence != nullptr) {
      plan.fence->fence.leave(plan.request);
      fences_.reschedule(*plan.fence);
    }
  }
  const auto self = clients_.find(client.id());
  ended_clients_.push_back(std::move(self->second));
  clients_.erase(self);
}

// --- Fences --------------------------------------------------------------------------------------

void Proxy::act(NamedFence& fence) {
  // An action may end in a call of the fence, which adds others.
  while (!actions_.empty()) {
    for (const Action& action : std::exchange(actions_, {})) act(fence, action);
  }
  fences_.reschedule(fence);
}

void Proxy::act(NamedFence& fence, const Action& action) {
  if (action.type == Action::Type::kWriteMark) {
    ++counts_.mark_writes;
    return writer_.submit(fence.name, action.mark);
  }
  const auto found = requests_.find(action.request);
  if (found == requests_.end()) return;
  ClientConnection& client = *found->second;
  const Plan& plan = plans_.at(client.id());
  switch (action.type) {
    case Action::Type::kForward:
      count(settings_.mode == GuardMode::kObserve ? Verdict::kAdmitted : action.verdict);
      return start_forward(client);
    case Action::Type::kRefuse: {
      const Problem problem = refusal(client, plan, action.verdict, action.max);
      requests_.erase(found);
      return client.respond(problem);
    }
    case Action::Type::kGiveUp: {
      const Problem problem = draining(plan);
      requests_.erase(found);
      return client.respond(problem);
    }
    case Action::Type::kBusy:
      requests_.erase(found);
      return client.respond(Problem{.status = 503,
                                    .code = "too_many_waiting",
                                    .title = "too many requests wait for this resource",
                                    .detail = fmt::format("{} wait already; nothing was forwarded",
                                                          settings_.fence.waiting_max),
                                    .retry = Retry::kLater,
                                    .headers = {max_header(action.max), {"Retry-After", "1"}}});
    case Action::Type::kWriteMark:
      return;
  }
}

// Of what is forwarded.
void Proxy::count(Verdict verdict) {
  ++counts_.decisions[std::string(pawl::to_text(verdict))];
  if (verdict != Verdict::kAdmitted) ++counts_.let_through;
}

void Proxy::on_time() {
  while (NamedFence* fence = fences_.due(poller_.now())) {
    fence->fence.on_time(poller_.now(), actions_);
    act(*fence);
  }
}

void Proxy::on_marks_written() {
  const auto names = writer_.take();
  if (!names) {
    failure_ = names.error();
    return;
  }
  for (const std::string& name : *names) {
    NamedFence& fence = *fences_.find(name);
    fence.fence.mark_written(poller_.now(), actions_);
    act(fence);
  }
}

}  // namespace pawl::gate
