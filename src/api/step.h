// What a route does, without doing it: handlers are functions from what was asked to the next step,
// and never touch a socket.
//
//   Step show(const RouteRequest& asked) {
//     return RunCommand{{"INSPECT", asked.name}, [](const wire::Value& lock) -> Step {
//       return json_response(200, to_json(lock));
//     }};
//   }
//
// A command that pawld refuses never reaches `then`: it becomes a problem (problems.h).
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/types.h"
#include "http/message.h"
#include "http/server.h"
#include "http/url.h"
#include "wire/value.h"

namespace pawl::server {
class Engine;
}  // namespace pawl::server

namespace pawl::api {

class RouteTable;
struct RunCommand;
struct EngineQuery;
struct Stream;
using Step = std::variant<http::Response, http::Problem, RunCommand, EngineQuery, Stream>;

// A command on this request's connection to the engine, and what its reply leads to.
struct RunCommand {
  std::vector<std::string> command;
  std::function<Step(const wire::Value&)> then;
};

// Reads from the engine, on the engine's thread: copies what is needed, quickly, and returns how to
// go on, which happens here.
struct EngineQuery {
  std::function<std::function<Step()>(const server::Engine&)> query;
};

// An answer without end: the command's reply becomes the first text, and every push after it the
// next. What `on_push` returns is sent as it is.
struct Stream {
  std::vector<std::string> command;
  std::function<std::string(const wire::Value&)> begin;
  std::function<std::string(const wire::Value&)> on_push;
};

// A request on its way to a handler.
struct RouteRequest {
  const http::Request& http;
  const http::Query& query;
  std::string name;  // {name} of the path, decoded; empty when it has none
  const RouteTable& routes;
  const std::string& data;          // the directory of the store; empty when nothing is stored
  Millis ttl_max;                   // the configuration's limit on ttl_ms
  http::Server::Usage connections;  // of the HTTP server
};
using Handler = std::function<Step(const RouteRequest&)>;

}  // namespace pawl::api
