#include "api/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "api/json.h"
#include "api/problems.h"
#include "base/assert.h"
#include "http/web_rules.h"
#include "wire/command_writer.h"
#include "wire/reply_decoder.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

using http::Problem;

// A proxy or a browser must not wait for more before it passes events on.
constexpr std::string_view kQuiet = ": quiet\n\n";
constexpr std::string_view kAuth = "AUTH";

void append(std::string& out, const std::vector<std::string>& command) {
  const std::vector<std::string_view> words(command.begin(), command.end());
  wire::append_command(out, words);
}

// "USER:SECRET" as AUTH takes it; empty when nothing was sent.
std::variant<std::vector<std::string>, Problem> credentials_of(const http::Request& request) {
  constexpr std::string_view kScheme = "Bearer ";
  if (request.count("Authorization") == 0) return std::vector<std::string>{};
  const std::string_view sent = request.header("Authorization").value_or("");
  const std::size_t colon = sent.find(':');
  if (sent.size() <= kScheme.size() || !http::same_word(sent.substr(0, kScheme.size()), kScheme) ||
      colon == std::string_view::npos || colon == kScheme.size())
    return problem_of("NOAUTH Authorization must be: Bearer USER:SECRET");
  return std::vector<std::string>{std::string(kAuth),
                                  std::string(sent.substr(kScheme.size(), colon - kScheme.size())),
                                  std::string(sent.substr(colon + 1))};
}

Problem no_such_route(const http::Target& target) {
  return not_found(
      "unknown_route", "there is no such route",
      fmt::format("{} is no route of pawld; GET / lists them", wire::shown(target.path)));
}

Problem wrong_method(const Match& match) {
  std::string allowed;
  for (const std::string_view method : match.allowed)
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", method);
  return {405,
          "wrong_method",
          "this route has other methods",
          "only " + allowed + " is answered here",
          http::Retry::kNever,
          {{"Allow", allowed}}};
}

std::optional<Problem> refuse_parameters(const Route& route, const http::Query& query) {
  std::vector<std::string_view> known;
  for (const HttpParameter& parameter : route.parameters) {
    if (parameter.in == ParameterIn::kQuery) known.push_back(parameter.name);
  }
  for (const auto& [name, value] : query) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return invalid(
          fmt::format("unknown parameter {}{}", wire::shown(name), suggestion(name, known)));
  }
  return std::nullopt;
}

}  // namespace

// A reply to come: of which command, and what it leads to.
struct Service::ExpectedReply {
  std::string command;
  Then then;
};

// One request under way.
struct Service::PendingRequest {
  std::uint64_t number = 0;
  std::shared_ptr<http::Exchange> exchange;
  const Route* route = nullptr;  // nothing: it has none
  std::optional<ConnectionId> line;
  bool greeted = false;  // RESP3 from now on
  bool done = false;
  wire::ReplyDecoder decoder;
  std::string unread;
  std::deque<ExpectedReply> expected;  // in order
  std::optional<Stream> stream;
  std::size_t untaken = 0;  // bytes of the lane that the reader of the stream has not taken yet
};

Service::Service(server::EngineMailbox& mailbox, Settings settings)
    : mailbox_(mailbox), settings_(std::move(settings)), routes_(all_routes()) {}

Service::~Service() = default;

// --- A request -----------------------------------------------------------------------------------

void Service::handle(std::shared_ptr<http::Exchange> exchange) {
  const Handle pending = std::make_shared<PendingRequest>();
  pending->number = ++last_;
  pending->exchange = std::move(exchange);
  pending_.emplace(pending->number, pending);
  pending->exchange->on_gone = [this, weak = std::weak_ptr(pending)](http::Gone how) {
    if (const Handle here = weak.lock()) gone(here, how);
  };
  advance(pending, first_step(*pending));
}

Step Service::first_step(PendingRequest& pending) const {
  const http::Request& request = pending.exchange->request();
  const auto target = http::parse_target(request.target);
  const Match match = target ? routes_.find(request.method, target->path) : Match{};
  if (match.route == nullptr || !match.route->any_host) {
    if (auto foreign = http::refuse_host(request, settings_.hosts)) return *foreign;
  }
  if (auto foreign = http::refuse_origin(request)) return *foreign;
  if (!target) return invalid(target.error().detail, "malformed");
  return route_step(pending, match, *target);
}

Step Service::route_step(PendingRequest& pending, const Match& match,
                         const http::Target& target) const {
  const http::Request& request = pending.exchange->request();
  if (match.allowed.empty()) return no_such_route(target);
  if (match.route == nullptr) return wrong_method(match);
  const Route& route = *match.route;
  pending.route = &route;
  if (request.method == "POST") {
    if (auto wrong = http::refuse_media_type(request)) return *wrong;
  }
  if (auto wrong = refuse_parameters(route, target.query)) return *wrong;
  const auto name = http::percent_decoded(match.name);
  if (!name) return invalid("the path has a % that is not followed by two hex digits", "malformed");
  Step step = route.handler(RouteRequest{request, target.query, *name, routes_, settings_.data,
                                         settings_.ttl_max, settings_.usage()});
  const bool asks =
      std::holds_alternative<RunCommand>(step) || std::holds_alternative<Stream>(step);
  if (asks || route.access == wire::Access::kNone) return step;
  // An answer without a command still needs the user: first a command that needs the role of the
  // route, or, for a request that is wrong in itself and changes nothing, any user (PING).
  const std::string command = route.access == wire::Access::kObserve ? "TIME" : "PING";
  return RunCommand{{command}, [step = std::move(step)](const wire::Value&) { return step; }};
}

// --- Its steps -----------------------------------------------------------------------------------

void Service::advance(const Handle& pending, Step step) {
  if (pending->done) return;
  if (auto* response = std::get_if<http::Response>(&step))
    return answer(pending, std::move(*response));
  if (const auto* problem = std::get_if<Problem>(&step))
    return answer(pending, to_response(*problem));
  if (auto* ask = std::get_if<RunCommand>(&step))
    return send_command(pending, ask->command, std::move(ask->then));
  if (const auto* query = std::get_if<EngineQuery>(&step)) return ask_engine(pending, *query);
  observe(pending, std::get<Stream>(step));
}

void Service::answer(const Handle& pending, http::Response response) {
  forget(pending);
  pending->exchange->answer(std::move(response));
}

// RESP3, where a map is a map. With credentials everything else waits for their reply: a command
// must never run as someone else than it was signed.
void Service::send_command(const Handle& pending, const std::vector<std::string>& command,
                           Then then) {
  std::string bytes;
  if (!pending->greeted && !pending->line) {
    const auto credentials = credentials_of(pending->exchange->request());
    if (const auto* wrong = std::get_if<Problem>(&credentials)) return advance(pending, *wrong);
    if (const auto& auth = std::get<std::vector<std::string>>(credentials); !auth.empty()) {
      append(bytes, auth);
      pending->expected.push_back({std::string(kAuth), [this, weak = std::weak_ptr(pending),
                                                        command, then](const wire::Value&) {
                                     const Handle here = weak.lock();
                                     if (!here) return std::optional<Step>();
                                     if (auto full = refuse_place(*here))
                                       return std::optional<Step>(std::move(*full));
                                     send_command(here, command, then);
                                     return std::optional<Step>();
                                   }});
      return send(pending, std::move(bytes));
    }
    // Known without credentials: by a certificate, or because everyone is. Without either the
    // engine refuses the command, and the client stays unknown.
    if (!settings_.users || !pending->exchange->request().user.empty()) {
      if (auto full = refuse_place(*pending)) return advance(pending, std::move(*full));
    }
  }
  if (!std::exchange(pending->greeted, true)) {
    append(bytes, {"HELLO", "3"});
    pending->expected.push_back({"HELLO", [](const wire::Value&) { return std::nullopt; }});
  }
  append(bytes, command);
  pending->expected.push_back({command.front(), std::move(then)});
  send(pending, std::move(bytes));
}

std::optional<Problem> Service::refuse_place(const PendingRequest& pending) {
  switch (pending.exchange->admit()) {
    case http::Admission::kAll:
      return std::nullopt;
    case http::Admission::kRenewals:
      if (pending.route != nullptr && pending.route->on_reserved) return std::nullopt;
      return busy(
          "connections: the limit of connections with requests under way is reached; on this one "
          "only renewals and releases are served");
    case http::Admission::kNone:
      break;
  }
  return busy(
      "connections: the limit of connections with requests under way, and of those for renewals, "
      "is reached");
}

void Service::send(const Handle& pending, std::string bytes) {
  bool sent = true;
  if (pending->line) {
    sent = mailbox_.send(*pending->line, std::move(bytes));
  } else {
    const http::Request& request = pending->exchange->request();
    pending->line = mailbox_.open("http:" + request.peer, std::move(bytes), request.user);
    sent = pending->line.has_value();
    if (sent) by_connection_.emplace(*pending->line, pending);
  }
  if (!sent) advance(pending, busy("http: pawld has too many requests under way"));
}

void Service::ask_engine(const Handle& pending, const EngineQuery& query) {
  const auto on_the_loop = [this, number = pending->number,
                            query = query.query](const server::Engine& engine) {
    return [this, number, then = query(engine)] {
      const auto found = pending_.find(number);
      if (found == pending_.end()) return;
      const Handle here = found->second;
      advance(here, then());
    };
  };
  if (!mailbox_.query(on_the_loop))
    advance(pending, busy("http: pawld has too many requests under way"));
}

void Service::observe(const Handle& pending, const Stream& stream) {
  pending->stream = stream;
  pending->exchange->on_drained = [this, weak = std::weak_ptr(pending)] {
    const Handle here = weak.lock();
    if (here && here->line) mailbox_.read(*here->line, std::exchange(here->untaken, 0));
  };
  send_command(pending, stream.command, [weak = std::weak_ptr(pending)](const wire::Value& reply) {
    if (const Handle here = weak.lock()) {
      const std::string first = here->stream->begin(reply);
      here->exchange->begin_stream({200, "text/event-stream", first}, std::string(kQuiet));
    }
    return std::nullopt;
  });
}

// --- What the mailbox has ------------------------------------------------------------------------

void Service::take_deliveries() {
  for (server::EngineMailbox::Delivery& delivery : mailbox_.take()) {
    if (delivery.result) {
      delivery.result();
      continue;
    }
    const auto found = by_connection_.find(delivery.connection);
    const Handle pending = found == by_connection_.end() ? nullptr : found->second;
    if (!delivery.bytes.empty()) {
      const std::size_t before = pending ? pending->untaken : 0;
      if (pending) receive(pending, delivery.bytes);
      if (!pending || pending->untaken == before)
        mailbox_.read(delivery.connection, delivery.bytes.size());
    }
    if (delivery.closed && pending) {
      by_connection_.erase(delivery.connection);
      closed(pending);
    }
  }
}

void Service::receive(const Handle& pending, std::string_view bytes) {
  pending->unread += bytes;
  std::string_view rest = pending->unread;
  bool sent = false;
  while (!pending->done) {
    wire::DecodedReply reply = pending->decoder.decode(rest);
    rest.remove_prefix(reply.consumed);
    if (reply.status == wire::DecodeStatus::kProtocolError)
      return advance(pending, unexpected_reply("a command"));
    if (reply.status != wire::DecodeStatus::kComplete) break;
    if (reply.value.is_push() || pending->expected.empty()) {
      sent = send_event(pending, reply.value) || sent;
    } else {
      take(pending, reply.value);
    }
  }
  pending->unread.erase(0, pending->unread.size() - rest.size());
  if (sent) pending->untaken += bytes.size();  // Until the reader has taken it.
}

void Service::take(const Handle& pending, const wire::Value& value) {
  const ExpectedReply expected = std::move(pending->expected.front());
  pending->expected.pop_front();
  if (value.is_error()) return advance(pending, refusal(*pending, expected.command, value.text));
  if (auto step = expected.then(value)) advance(pending, std::move(*step));
}

http::Problem Service::refusal(const PendingRequest& pending, std::string_view command,
                               std::string_view line) {
  if (command == kAuth) return problem_of_credentials(line);
  if (wire::error_code_from_text(line.substr(0, line.find(' '))) == wire::ErrorCode::kReadOnly)
    return standby(line, pending.exchange->request());
  if (pending.route == nullptr) return problem_of(line);
  return problem_of(line,
                    {command, pending.route->method, pending.route->path, pending.route->access});
}

bool Service::send_event(const Handle& pending, const wire::Value& value) {
  if (!pending->stream) return false;
  const std::string text = pending->stream->on_push(value);
  if (!text.empty()) pending->exchange->write(text);
  return !text.empty();
}

void Service::closed(const Handle& pending) {
  const bool streaming = pending->stream && pending->expected.empty();
  pending->line.reset();
  if (pending->done) return;
  if (!streaming) return advance(pending, uncertain());
  forget(pending);
  pending->exchange->end_stream();
}

// --- The end -------------------------------------------------------------------------------------

// Silent: what was asked is still answered, but its wait is over, as after any half-close.
void Service::gone(const Handle& pending, http::Gone how) {
  if (how == http::Gone::kClosed) return forget(pending);
  if (pending->line) mailbox_.hang_up(*pending->line);
}

void Service::forget(const Handle& pending) {
  pending->done = true;
  pending_.erase(pending->number);
  if (!pending->line) return;
  mailbox_.hang_up(*pending->line);
  by_connection_.erase(*pending->line);
}

}  // namespace pawl::api
