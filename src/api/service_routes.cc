// About pawld itself.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "api/json.h"
#include "api/openapi.h"
#include "api/problems.h"
#include "api/route.h"
#include "server/engine.h"
#include "server/metrics.h"

namespace pawl::api {
namespace {

// The process lives, and this thread of it: the engine is not asked.
Step health(const RouteRequest&) {
  return json_response(200, boost::json::object{{"status", "ok"}});
}

Step ready(const RouteRequest&) {
  return EngineQuery{[](const server::Engine& engine) -> std::function<Step()> {
    return [state = engine.state(), restoring = engine.restoring()]() -> Step {
      switch (state) {
        case server::ServiceState::kLoading:
          return problem_of("LOADING pawld is still reading its data");
        case server::ServiceState::kStandby:
          return problem_of("READONLY another pawld is active");
        case server::ServiceState::kFull:
          return problem_of("FULL no disk space for new grants; renewals and releases go on");
        case server::ServiceState::kRestoring:
          return still_restoring(restoring);
        case server::ServiceState::kGranting:
          break;
      }
      return json_response(200, boost::json::object{{"status", "ready"}});
    };
  }};
}

// Copied on the loop's thread, rendered on this one.
Step metrics(const RouteRequest& asked) {
  const server::HttpReadings connections{
      asked.connections.connections, asked.connections.connections_max, asked.connections.refused,
      asked.connections.late, asked.connections.displaced};
  return EngineQuery{[data = asked.data, connections](const server::Engine& engine) {
    return [data, connections, readings = server::readings_of(engine)]() -> Step {
      return http::Response{
          200, server::kMetricsType,
          server::metrics_text(readings, server::read_process(data), connections)};
    };
  }};
}

Step front_page(const RouteRequest& asked) {
  std::string text = "pawld: locks whose every grant carries a fencing token.\n\n";
  for (const Route& route : asked.routes.all()) {
    text.append(route.method)
        .append(route.method.size() < 4 ? "  " : " ")
        .append(route.path)
        .append("\n    ");
    text.append(route.summary).append("\n");
  }
  return http::Response{200, "text/plain; charset=utf-8", std::move(text)};
}

Step document(const RouteRequest& asked) {
  return http::Response{200, "application/json", openapi_document(asked.routes)};
}

}  // namespace

void add_service_routes(RouteTable& table) {
  table.add({
      .method = "GET",
      .path = "/metrics",
      .access = wire::Access::kObserve,
      .id = "metrics",
      .summary = "figures for Prometheus",
      .handler = metrics,
      .answers = {{200, "", "the text format, version 0.0.4", "text/plain"}},
      .example = "http://127.0.0.1:7296/metrics",
  });
  table.add({
      .method = "GET",
      .path = "/v1/openapi.json",
      .access = wire::Access::kNone,
      .id = "openapi",
      .summary = "this interface, as an OpenAPI 3.1 document",
      .handler = document,
      .answers = {{200, "Document", "the document"}},
      .example = "http://127.0.0.1:7296/v1/openapi.json",
  });
  table.add({
      .method = "GET",
      .path = "/healthz",
      .access = wire::Access::kNone,
      .id = "healthz",
      .summary = "whether the process lives",
      .handler = health,
      .answers = {{200, "Health", "it does"}},
      .any_host = true,
      .example = "http://127.0.0.1:7296/healthz",
  });
  table.add({
      .method = "GET",
      .path = "/readyz",
      .access = wire::Access::kNone,
      .id = "readyz",
      .summary = "whether locks can be granted: the data is loaded, the disk is not full, and no "
                 "restore is waited out",
      .handler = ready,
      .answers = {{200, "Health", "they can"}, {503, "Problem", "not now, and why", kProblemJson}},
      .any_host = true,
      .example = "http://127.0.0.1:7296/readyz",
  });
  table.add({
      .method = "GET",
      .path = "/",
      .access = wire::Access::kNone,
      .id = "front",
      .summary = "what there is, in a few lines",
      .handler = front_page,
      .answers = {{200, "", "text for people", "text/plain"}},
      .example = "http://127.0.0.1:7296/",
  });
}

}  // namespace pawl::api
