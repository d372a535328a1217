// The HTTP side of a verb, as data: src/api makes a route, its OpenAPI description and its part of
// the reference page of it. The role is the verb's.
//
// A route whose parameters say how each becomes an argument (`option`, or by its position),
// and whose answer is the reply as JSON, needs nothing else. Others name themselves (`id`) to a
// handler in src/api.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pawl::server {

enum class ParameterIn : std::uint8_t { kPath, kQuery, kHeader };

struct HttpParameter {
  ParameterIn in = ParameterIn::kQuery;
  std::string_view name;
  bool required = false;
  std::string_view schema;  // JSON Schema, as JSON
  std::string_view summary;
  // Its value follows this word in the command; empty: it stands by itself.
  std::string_view option = {};
};

struct HttpAnswer {
  int status = 200;
  std::string_view schema;  // a name in src/api/schemas.cc; empty: no JSON
  std::string_view summary;
  std::string_view type = "application/json";
};

struct HttpRoute {
  std::string_view method;
  std::string_view path;  // "/v1/locks/{name}/break"; at most one {name}
  std::string_view id;    // operationId
  std::string_view summary;
  std::span<const HttpParameter> parameters = {};
  std::string_view body = {};  // its schema; empty: none
  std::span<const HttpAnswer> answers = {};
  std::string_view example = {};  // arguments of curl, behind its options; for the reference page
};

inline constexpr std::string_view kProblemJson = "application/problem+json";
// The lock in the path of a route.
inline constexpr HttpParameter kLockInPath{
    ParameterIn::kPath, "name", true, R"({"$ref":"#/components/schemas/LockName"})",
    "the lock, percent-encoded; slashes may stand as they are"};
inline constexpr HttpParameter kPageSize{
    ParameterIn::kQuery,
    "limit",
    false,
    R"({"type":"integer","minimum":1,"maximum":1000,"default":100})",
    "page size: the maximum number of entries, 1 to 1000 (default 100); not the limit of acquire",
    "COUNT"};

}  // namespace pawl::server
