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
#include "wire/verbs.h"

namespace pawl::api {

enum class Place : std::uint8_t { kPath, kQuery, kHeader };

struct Parameter {
  Place place = Place::kQuery;
  std::string_view name;
  bool required = false;
  std::string_view schema;  // JSON Schema, as JSON
  std::string_view summary;
};

struct Answer {
  int status = 200;
  std::string_view schema;  // a name in schemas.cc; empty: no JSON
  std::string_view summary;
  std::string_view type = "application/json";
};

struct Route {
  std::string_view method;
  std::string_view path;  // "/v1/locks/{name}/break"; at most one {name}
  wire::Access access = wire::Access::kObserve;
  std::string_view id;  // operationId
  std::string_view summary;
  Handler handler;
  std::vector<Parameter> parameters = {};
  std::string_view body = {};  // its schema; empty: none
  std::vector<Answer> answers = {};
  bool any_host =
      false;  // whatever Host says: probes send an address, and learn nothing that is worth hiding
  std::string_view example = {};  // arguments of curl, behind its options; for the reference page
};

struct Match {
  const Route* route = nullptr;
  std::string name;  // still encoded
  std::vector<std::string_view>
      allowed;  // the methods of this path, when it is not one of them; empty: no such path
};

class RouteTable {
 public:
  // Not one that is there already.
  void add(Route route);
  [[nodiscard]] const std::vector<Route>& all() const { return routes_; }
  // Slashes in {name} may stand as they are. Where a path fits two patterns the longer one counts,
  // whatever the method: …/a/history is the history of `a`; the lock `a/history` is a%2Fhistory.
  [[nodiscard]] Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

// Everything that pawld serves by itself.
void add_lease_routes(RouteTable& table);
void add_lock_routes(RouteTable& table);
void add_event_routes(RouteTable& table);
void add_service_routes(RouteTable& table);
[[nodiscard]] RouteTable all_routes();

}  // namespace pawl::api
