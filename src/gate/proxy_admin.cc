// What operators ask a gate: its state, its metrics, and to settle what is not known.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include "gate/proxy.h"

namespace pawl::gate {
namespace {

namespace json = boost::json;
using http::Problem;
using http::Response;

constexpr std::size_t kResourcesShown = 1000;

}  // namespace

Response Proxy::administer(const ClientConnection& client) {
  const RequestHead& head = client.head();
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (get && head.target == "/metrics")
    return {200, "text/plain; version=0.0.4", metrics_text(), {}};
  if (get && head.target == "/healthz") return {200, "text/plain", "ok\n", {}};
  if (get && head.target == "/v1/status") return {200, "application/json", status_json(), {}};
  if (head.method == "POST" && head.target == "/v1/settle") {
    if (client.door() == ClientConnection::Door::kLocalAdmin && client.body_done())
      return settle(client.body());
    return to_response(Problem{.status = 403,
                               .code = "not_local",
                               .title = "only the operator of this machine may settle",
                               .detail = "run `pawl gate settle` with the gate's --state"});
  }
  return to_response(Problem{.status = 404,
                             .code = "not_found",
                             .title = "there is nothing here",
                             .detail = "see /metrics, /healthz, /v1/status"});
}

Response Proxy::settle(const std::string& body) {
  json::error_code error;
  const json::value parsed = json::parse(body, error);
  const auto* object = error ? nullptr : parsed.if_object();
  const auto* name = object == nullptr ? nullptr : object->if_contains("resource");
  if (name == nullptr || !name->is_string()) {
    return to_response(Problem{.status = 400,
                               .code = "malformed_request",
                               .title = "the request cannot be read",
                               .detail = "send {\"resource\": \"/accounts/7\"}"});
  }
  const std::string resource(name->as_string());
  NamedFence* fence = fences_.find(resource);
  if (fence == nullptr) {
    return to_response(Problem{
        .status = 404,
        .code = "unknown_resource",
        .title = "the gate has seen no token for this resource",
        .detail = fmt::format("{} is not known; `pawl gate status` lists what is", resource)});
  }
  const std::size_t settled = fence->fence.settle(poller_.now(), actions_);
  act(*fence);
  counts_.settled += settled;
  log_.warning(fmt::format("{}: an operator settled {} forwards", resource, settled),
               {{"event", "settled"}, {"resource", resource}, {"forwards", settled}});
  return {200,
          "application/json",
          json::serialize(json::object{{"resource", resource}, {"settled", settled}}) + "\n",
          {}};
}

std::string Proxy::status_json() {
  json::array resources;
  std::size_t in_flight = 0, unknown = 0, waiting = 0;
  const auto add = [&](const std::string& name, const FenceView& view) {
    json::object shown{
        {"resource", name},       {"max", view.max.value},       {"token", view.mark.token.value},
        {"open", view.mark.open}, {"in_flight", view.in_flight}, {"unknown", view.unknown},
        {"waiting", view.waiting}};
    resources.push_back(std::move(shown));
  };
  // Those that are in use first: there may be more than are shown.
  for (const bool quiet : {false, true}) {
    fences_.for_each([&](NamedFence& each) {
      const FenceView view = each.fence.view();
      if ((view.in_flight + view.unknown + view.waiting == 0) != quiet) return;
      in_flight += view.in_flight;
      unknown += view.unknown;
      waiting += view.waiting;
      if (resources.size() < kResourcesShown) add(each.name, view);
    });
  }
  const json::object status{{"mode", std::string(pawl::to_text(settings_.mode))},
                            {"resources_known", fences_.size()},
                            {"in_flight", in_flight},
                            {"unknown", unknown},
                            {"waiting", waiting},
                            {"connections", clients_.size()},
                            {"resources", std::move(resources)}};
  return json::serialize(status) + "\n";
}

std::string Proxy::metrics_text() {
  std::size_t in_flight = 0, unknown = 0, waiting = 0;
  fences_.for_each([&](NamedFence& each) {
    const FenceView view = each.fence.view();
    in_flight += view.in_flight;
    unknown += view.unknown;
    waiting += view.waiting;
  });
  std::string text;
  const auto metric = [&](std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  const auto single = [&](std::string_view name, std::string_view type, std::string_view help,
                          std::uint64_t value) {
    metric(name, type, help);
    text += fmt::format("{} {}\n", name, value);
  };
  metric("pawl_guard_decisions_total", "counter", "Verdicts of the gate.");
  for (const auto& [verdict, count] : counts_.decisions) {
    text +=
        fmt::format("pawl_guard_decisions_total{{guard=\"gate\",mode=\"{}\",verdict=\"{}\"}} {}\n",
                    pawl::to_text(settings_.mode), verdict, count);
  }
  metric("pawl_gate_forwards_total", "counter", "Forwards that are over, by outcome.");
  for (const auto& [outcome, count] : counts_.outcomes)
    text += fmt::format("pawl_gate_forwards_total{{outcome=\"{}\"}} {}\n", outcome, count);
  single("pawl_gate_let_through_total", "counter",
         "Requests that were let through although their verdict was not admitted.",
         counts_.let_through);
  single("pawl_gate_drain_timeouts_total", "counter",
         "Requests that waited for lower tokens and were answered 503.", counts_.gave_up);
  single("pawl_gate_mark_writes_total", "counter", "Marks that were written to disk.",
         counts_.mark_writes);
  single("pawl_gate_settled_total", "counter", "Forwards that an operator settled.",
         counts_.settled);
  single("pawl_gate_connections_refused_total", "counter",
         "Connections that were closed because there was no place for them.",
         counts_.refused_connections);
  single("pawl_gate_connections", "gauge", "Connections of clients.", clients_.size());
  single("pawl_gate_resources", "gauge", "Resources whose fence is remembered.", fences_.size());
  single("pawl_gate_in_flight", "gauge", "Writes that were forwarded and may be answered.",
         in_flight);
  single("pawl_gate_unknown", "gauge",
         "Writes whose outcome is not known; greater tokens of their resources wait.", unknown);
  single("pawl_gate_waiting", "gauge", "Requests that wait for lower tokens.", waiting);
  return text;
}

}  // namespace pawl::gate
