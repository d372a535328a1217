#include "guard/dynamodb/scratch_log.h"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr std::size_t kSpaceNameSize = std::string_view("pawl_conformance_00000000").size();

}  // namespace

std::string dynamo_scratch_table(std::string_view resource) {
  return std::string(resource.substr(0, kSpaceNameSize));
}

std::string dynamo_scratch_pattern(std::string_view guard) {
  return fmt::format("{}/{}/*", dynamo_scratch_table(guard), guard);
}

json::object dynamo_log_key(std::string_view resource) {
  const ResourceName name = split_resource(resource);
  return {{"id", string_value(fmt::format("{}/{}", name.guard, name.key.value_or("log")))}};
}

DynamoOp dynamo_log_op(std::string_view resource, std::uint64_t token, std::string_view value) {
  DynamoOp op{.kind = DynamoOp::Kind::kUpdate,
              .table = dynamo_scratch_table(resource),
              .fields = dynamo_log_key(resource)};
  op.update = "SET #log = list_append(if_not_exists(#log, :none), :line)";
  op.names["#log"] = "log";
  op.values[":none"] = json::object{{"L", json::array{}}};
  op.values[":line"] =
      json::object{{"L", json::array{string_value(fmt::format("{} {}", token, value))}}};
  return op;
}

std::vector<Effect> dynamo_log_effects(const json::object& item) {
  std::vector<Effect> effects;
  const auto* log = item.if_contains("log");
  const auto* list =
      log != nullptr && log->is_object() ? log->get_object().if_contains("L") : nullptr;
  if (list == nullptr || !list->is_array()) return effects;
  for (const json::value& each : list->get_array()) {
    const json::object wrapped{{"line", each}};
    const std::string_view line = text_of(wrapped, "line", "S");
    const std::size_t space = std::min(line.find(' '), line.size());
    effects.push_back({parse_token(line.substr(0, space)).value_or(0),
                       std::string(line.substr(std::min(space + 1, line.size())))});
  }
  return effects;
}

}  // namespace pawl::guard
