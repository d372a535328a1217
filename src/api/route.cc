#include "api/route.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"

namespace pawl::api {
namespace {

constexpr std::string_view kName = "{name}";

// What stands for {name}, still encoded; "" when the pattern has none.
std::optional<std::string_view> fit(std::string_view pattern, std::string_view path) {
  const std::size_t at = pattern.find(kName);
  if (at == std::string_view::npos)
    return pattern == path ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + kName.size());
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after))
    return std::nullopt;
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

}  // namespace

void RouteTable::add(Route route) {
  PAWL_ASSERT(std::none_of(routes_.begin(), routes_.end(), [&](const Route& other) {
    return other.method == route.method && other.path == route.path;
  }));
  routes_.push_back(std::move(route));
}

Match RouteTable::find(std::string_view method, std::string_view path) const {
  std::string_view best;
  for (const Route& route : routes_) {
    if (route.path.size() > best.size() && fit(route.path, path)) best = route.path;
  }
  Match match;
  for (const Route& route : routes_) {
    if (best.empty() || route.path != best) continue;
    match.allowed.push_back(route.method);
    if (route.method != method) continue;
    match.route = &route;
    match.name = *fit(route.path, path);
  }
  return match;
}

RouteTable all_routes() {
  RouteTable table;
  add_verb_routes(table);
  add_service_routes(table);
  return table;
}

}  // namespace pawl::api
