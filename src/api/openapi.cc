#include "api/openapi.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/version.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

std::string_view to_text(ParameterIn in) {
  switch (in) {
    case ParameterIn::kPath:
      return "path";
    case ParameterIn::kQuery:
      return "query";
    case ParameterIn::kHeader:
      return "header";
  }
  return "";
}

json::object reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

json::object content(std::string_view type, std::string_view schema) {
  const json::object shape = schema.empty() ? json::object{{"type", "string"}} : reference(schema);
  return {{type, json::object{{"schema", shape}}}};
}

json::array parameters_of(const Route& route) {
  json::array parameters;
  for (const HttpParameter& parameter : route.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"in", to_text(parameter.in)},
                          {"required", parameter.required},
                          {"description", parameter.summary},
                          {"schema", json::parse(std::string(parameter.schema))}});
  }
  return parameters;
}

// The problems that any route may answer, by status. Every other one is a `default`.
struct Common {
  std::string_view status, name, summary;
};
constexpr Common kCommon[]{
    {"307", "Standby", "this pawld stands by: the same request, to the active one in Location"},
    {"400", "Invalid", "the request is wrong; detail says what was expected"},
    {"401", "Unauthorized", "credentials are needed, or were wrong"},
    {"403", "Forbidden",
     "this user may not do that, or the request came from a web page or for another host"},
    {"503", "Unavailable", "not now (limits, loading, disk); the code says whether it happened"},
};

json::object common_responses() {
  json::object responses;
  for (const Common& common : kCommon) {
    responses[common.name] =
        json::object{{"description", common.summary},
                     {"content", content("application/problem+json", "Problem")}};
  }
  return responses;
}

json::object responses_of(const Route& route) {
  json::object responses;
  for (const HttpAnswer& answer : route.answers) {
    json::object response{{"description", answer.summary}};
    if (answer.status != 204) response["content"] = content(answer.type, answer.schema);
    responses[std::to_string(answer.status)] = response;
  }
  for (const Common& common : kCommon) {
    if (common.status == "401" && route.access == wire::Access::kNone) continue;
    if (common.status == "307" && !route.redirected) continue;
    if (!responses.contains(common.status))
      responses[common.status] =
          json::object{{"$ref", "#/components/responses/" + std::string(common.name)}};
  }
  responses["default"] = json::object{{"description", "a problem; its code says which"},
                                      {"content", content("application/problem+json", "Problem")}};
  return responses;
}

json::object operation_of(const Route& route) {
  json::object operation{{"operationId", route.id},
                         {"summary", route.summary},
                         {"description", "role: " + std::string(wire::to_text(route.access))}};
  if (!route.parameters.empty()) operation["parameters"] = parameters_of(route);
  if (!route.body.empty())
    operation["requestBody"] =
        json::object{{"required", true}, {"content", content("application/json", route.body)}};
  if (route.access == wire::Access::kNone) operation["security"] = json::array();
  operation["responses"] = responses_of(route);
  return operation;
}

json::value shapes() {
  json::value shapes = schemas();
  json::array codes;
  for (const std::string_view code : problem_codes()) codes.push_back(json::value(code));
  shapes.at("Problem").at("properties").at("code").as_object()["enum"] = codes;
  return shapes;
}

std::string lower(std::string_view method) {
  std::string out(method);
  for (char& c : out) c = static_cast<char>(c + 32);
  return out;
}

}  // namespace

std::string openapi_document(const RouteTable& table) {
  json::object paths;
  for (const Route& route : table.all()) {
    json::value& path = paths[route.path];
    if (path.is_null()) path.emplace_object();
    path.as_object()[lower(route.method)] = operation_of(route);
  }
  // Without an auth file nobody needs credentials: hence the empty alternative.
  const json::object document{
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "pawld"},
        {"version", kVersion},
        {"description",
         "Locks whose every grant carries a fencing token. Members that end in _ms are durations "
         "in "
         "milliseconds; granted, ended and at are times in Unix milliseconds. A body needs "
         "Content-Type: "
         "application/json."},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", json::array{{{"url", "/"}}}},
      {"security", json::array{json::object{{"bearer", json::array()}}, json::object()}},
      {"paths", paths},
      {"components",
       {{"securitySchemes",
         {{"bearer", {{"type", "http"}, {"scheme", "bearer"}, {"description", "USER:SECRET"}}}}},
        {"responses", common_responses()},
        {"schemas", shapes()}}}};
  return json::serialize(document) + "\n";
}

}  // namespace pawl::api
