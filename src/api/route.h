// The one table of routes. Dispatch, permission, the OpenAPI document, the reference page and the
// answers 404 and 405 all come from it.
//
//   RouteTable table;
//   table.add(Route{.method = "GET", .path = "/v1/status", .access = wire::Access::kObserve, …});
//   const Match match = table.find("GET", "/v1/status");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/step.h"
#include "server/verbs/http_route.h"
#include "wire/access.h"

namespace pawl::api {

using server::HttpAnswer;
using server::HttpParameter;
using server::kProblemJson;
using server::ParameterIn;

struct Route {
  std::string_view method;
  std::string_view path;  // "/v1/locks/{name}/break"; at most one {name}
  wire::Access access = wire::Access::kObserve;
  std::string_view id;  // operationId
  std::string_view summary;
  Handler handler;
  std::vector<HttpParameter> parameters = {};
  std::string_view body = {};  // its schema; empty: none
  std::vector<HttpAnswer> answers = {};
  // Answered whatever Host says: probes send an address, and learn nothing that is worth hiding.
  bool any_host = false;
  // A standby answers 307 to the active pawld. The others are about the pawld that is asked.
  bool redirected = false;
  // Served on the connections that are kept for renewals.
  bool on_reserved = false;
  std::string_view example = {};  // arguments of curl, behind its options; for the reference page
};

struct Match {
  const Route* route = nullptr;
  std::string name;  // still encoded
  // The methods of this path, when it is not one of them; empty: no such path.
  std::vector<std::string_view> allowed;
};

class RouteTable {
 public:
  // Not a method and path that is there already.
  void add(Route route);
  [[nodiscard]] const std::vector<Route>& all() const { return routes_; }
  // Slashes in {name} may stand as they are. Where a path fits two patterns the longer one counts,
  // whatever the method: …/a/history is the history of `a`; the lock `a/history` is a%2Fhistory.
  [[nodiscard]] Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

// The routes of the verbs (server/verbs), and those about pawld itself.
[[nodiscard]] RouteTable all_routes();
void add_verb_routes(RouteTable& table);
void add_service_routes(RouteTable& table);

// Handlers of verbs whose route is more than its parameters and the reply as JSON.
Step acquire(const RouteRequest& asked);
Step renew(const RouteRequest& asked);
Step release(const RouteRequest& asked);
Step list_locks(const RouteRequest& asked);
Step show_history(const RouteRequest& asked);
Step ask_holders(const RouteRequest& asked);
Step break_lock(const RouteRequest& asked);
Step stream_events(const RouteRequest& asked);

}  // namespace pawl::api
