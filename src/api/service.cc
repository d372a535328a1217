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
struct Service::Expected {
  std::string command;
  Then then;
};

// One request under way.
struct Service::Talk {
  std::uint64_t number = 0;
  std::shared_ptr<http::Exchange> exchange;
  const Route* route = nullptr;  // nothing: it has none
  std::optional<ConnectionId> line;
  bool greeted = false;  // RESP3 from now on
  bool done = false;
  wire::ReplyDecoder decoder;
  std::string unread;
  std::deque<Expected> expected;  // in order
  std::optional<Stream> stream;
  std::size_t untaken = 0;  // bytes of the lane that the reader of the stream has not taken yet
};

Service::Service(server::EngineMailbox& mailbox, Settings settings)
    : mailbox_(mailbox), settings_(std::move(settings)), routes_(all_routes()) {}

Service::~Service() = default;

// --- A request -----------------------------------------------------------------------------------

void Service::handle(std::shared_ptr<http::Exchange> exchange) {
  const Handle talk = std::make_shared<Talk>();
  talk->number = ++last_;
  talk->exchange = std::move(exchange);
  talks_.emplace(talk->number, talk);
  talk->exchange->on_gone = [this, weak = std::weak_ptr(talk)](http::Gone how) {
    if (const Handle here = weak.lock()) gone(here, how);
  };
  advance(talk, first_step(*talk));
}

Step Service::first_step(Talk& talk) const {
  const http::Request& request = talk.exchange->request();
  const auto target = http::parse_target(request.target);
  const Match match = target ? routes_.find(request.method, target->path) : Match{};
  if (match.route == nullptr || !match.route->any_host) {
    if (auto foreign = http::refuse_host(request, settings_.hosts)) return *foreign;
  }
  if (auto foreign = http::refuse_origin(request)) return *foreign;
  if (!target) return invalid(target.error().detail, "malformed");
  return route_step(talk, match, *target);
}

Step Service::route_step(Talk& talk, const Match& match, const http::Target& target) const {
  const http::Request& request = talk.exchange->request();
  if (match.allowed.empty()) return no_such_route(target);
  if (match.route == nullptr) return wrong_method(match);
  const Route& route = *match.route;
  talk.route = &route;
  if (request.method == "POST") {
    if (auto wrong = http::refuse_media_type(request)) return *wrong;
  }
  if (auto wrong = refuse_parameters(route, target.query)) return *wrong;
  const auto name = http::percent_decoded(match.name);
  if (!name) return invalid("the path has a % that is not followed by two hex digits", "malformed");
  Step step = route.handler(Asked{request, target.query, *name, routes_, settings_.data,
                                  settings_.ttl_max, settings_.usage()});
  const bool asks = std::holds_alternative<Ask>(step) || std::holds_alternative<Stream>(step);
  if (asks || route.access == wire::Access::kNone) return step;
  // An answer without a command still needs the user: first a command that needs the role of the
  // route, or, for a request that is wrong in itself and changes nothing, any user (PING).
  const std::string command = route.access == wire::Access::kObserve ? "TIME" : "PING";
  return Ask{{command}, [step = std::move(step)](const wire::Value&) { return step; }};
}

// --- Its steps -----------------------------------------------------------------------------------

void Service::advance(const Handle& talk, Step step) {
  if (talk->done) return;
  if (auto* response = std::get_if<http::Response>(&step))
    return answer(talk, std::move(*response));
  if (const auto* problem = std::get_if<Problem>(&step)) return answer(talk, to_response(*problem));
  if (auto* ask = std::get_if<Ask>(&step)) return say(talk, ask->command, std::move(ask->then));
  if (const auto* query = std::get_if<EngineQuery>(&step)) return ask_engine(talk, *query);
  observe(talk, std::get<Stream>(step));
}

void Service::answer(const Handle& talk, http::Response response) {
  forget(talk);
  talk->exchange->answer(std::move(response));
}

// RESP3, where a map is a map. With credentials everything else waits for their reply: a command
// must never run as someone else than it was signed.
void Service::say(const Handle& talk, const std::vector<std::string>& command, Then then) {
  std::string bytes;
  if (!talk->greeted && !talk->line) {
    const auto credentials = credentials_of(talk->exchange->request());
    if (const auto* wrong = std::get_if<Problem>(&credentials)) return advance(talk, *wrong);
    if (const auto& auth = std::get<std::vector<std::string>>(credentials); !auth.empty()) {
      append(bytes, auth);
      talk->expected.push_back({std::string(kAuth), [this, weak = std::weak_ptr(talk), command,
                                                     then](const wire::Value&) {
                                  if (const Handle here = weak.lock()) say(here, command, then);
                                  return std::nullopt;
                                }});
      return send(talk, std::move(bytes));
    }
  }
  if (!std::exchange(talk->greeted, true)) {
    append(bytes, {"HELLO", "3"});
    talk->expected.push_back({"HELLO", [](const wire::Value&) { return std::nullopt; }});
  }
  append(bytes, command);
  talk->expected.push_back({command.front(), std::move(then)});
  send(talk, std::move(bytes));
}

void Service::send(const Handle& talk, std::string bytes) {
  bool sent = true;
  if (talk->line) {
    sent = mailbox_.send(*talk->line, std::move(bytes));
  } else {
    const http::Request& request = talk->exchange->request();
    talk->line = mailbox_.open("http:" + request.peer, std::move(bytes), request.user);
    sent = talk->line.has_value();
    if (sent) lines_.emplace(*talk->line, talk);
  }
  if (!sent) advance(talk, busy("http: pawld has too many requests under way"));
}

void Service::ask_engine(const Handle& talk, const EngineQuery& query) {
  const auto on_the_loop = [this, number = talk->number,
                            query = query.query](const server::Engine& engine) {
    return [this, number, then = query(engine)] {
      const auto found = talks_.find(number);
      if (found == talks_.end()) return;
      const Handle here = found->second;
      advance(here, then());
    };
  };
  if (!mailbox_.query(on_the_loop))
    advance(talk, busy("http: pawld has too many requests under way"));
}

void Service::observe(const Handle& talk, const Stream& stream) {
  talk->stream = stream;
  talk->exchange->on_drained = [this, weak = std::weak_ptr(talk)] {
    const Handle here = weak.lock();
    if (here && here->line) mailbox_.read(*here->line, std::exchange(here->untaken, 0));
  };
  say(talk, stream.command, [weak = std::weak_ptr(talk)](const wire::Value& reply) {
    if (const Handle here = weak.lock()) {
      const std::string first = here->stream->begin(reply);
      here->exchange->begin_stream({200, "text/event-stream", first}, std::string(kQuiet));
    }
    return std::nullopt;
  });
}

// --- What the mailbox has --------------------------------------------------------------------------

void Service::take_deliveries() {
  for (server::EngineMailbox::Delivery& delivery : mailbox_.take()) {
    if (delivery.result) {
      delivery.result();
      continue;
    }
    const auto found = lines_.find(delivery.connection);
    const Handle talk = found == lines_.end() ? nullptr : found->second;
    if (!delivery.bytes.empty()) {
      const std::size_t before = talk ? talk->untaken : 0;
      if (talk) heard(talk, delivery.bytes);
      if (!talk || talk->untaken == before)
        mailbox_.read(delivery.connection, delivery.bytes.size());
    }
    if (delivery.closed && talk) {
      lines_.erase(delivery.connection);
      closed(talk);
    }
  }
}

void Service::heard(const Handle& talk, std::string_view bytes) {
  talk->unread += bytes;
  std::string_view rest = talk->unread;
  bool told = false;
  while (!talk->done) {
    wire::DecodedReply reply = talk->decoder.decode(rest);
    rest.remove_prefix(reply.consumed);
    if (reply.status == wire::DecodeStatus::kProtocolError)
      return advance(talk, strange("a command"));
    if (reply.status != wire::DecodeStatus::kComplete) break;
    if (reply.value.is_push() || talk->expected.empty()) {
      told = tell(talk, reply.value) || told;
    } else {
      take(talk, reply.value);
    }
  }
  talk->unread.erase(0, talk->unread.size() - rest.size());
  if (told) talk->untaken += bytes.size();  // Until the reader has taken it.
}

void Service::take(const Handle& talk, const wire::Value& value) {
  const Expected expected = std::move(talk->expected.front());
  talk->expected.pop_front();
  if (value.is_error()) return advance(talk, refusal(*talk, expected.command, value.text));
  if (auto step = expected.then(value)) advance(talk, std::move(*step));
}

http::Problem Service::refusal(const Talk& talk, std::string_view command, std::string_view line) {
  if (command == kAuth) return problem_of_credentials(line);
  if (talk.route == nullptr) return problem_of(line);
  return problem_of(line, {command, talk.route->method, talk.route->path, talk.route->access});
}

bool Service::tell(const Handle& talk, const wire::Value& value) {
  if (!talk->stream) return false;
  const std::string text = talk->stream->tell(value);
  if (!text.empty()) talk->exchange->write(text);
  return !text.empty();
}

void Service::closed(const Handle& talk) {
  const bool streaming = talk->stream && talk->expected.empty();
  talk->line.reset();
  if (talk->done) return;
  if (!streaming) return advance(talk, uncertain());
  forget(talk);
  talk->exchange->end_stream();
}

// --- The end -------------------------------------------------------------------------------------

// Silent: what was asked is still answered, but its wait is over, as after any half-close.
void Service::gone(const Handle& talk, http::Gone how) {
  if (how == http::Gone::kClosed) return forget(talk);
  if (talk->line) mailbox_.hang_up(*talk->line);
}

void Service::forget(const Handle& talk) {
  talk->done = true;
  talks_.erase(talk->number);
  if (!talk->line) return;
  mailbox_.hang_up(*talk->line);
  lines_.erase(*talk->line);
}

}  // namespace pawl::api
