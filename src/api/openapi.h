// The interface for programs (OpenAPI 3.1) and for people (a Markdown page), both from the table of
// routes.
#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "api/route.h"

namespace pawl::api {

[[nodiscard]] std::string openapi_document(const RouteTable& table);
// docs/reference/http.md
[[nodiscard]] std::string http_page(const RouteTable& table);
// The codes of problems, all of them.
[[nodiscard]] std::vector<std::string_view> problem_codes();
// The shapes that routes name: an object with a schema for each.
[[nodiscard]] boost::json::value schemas();

}  // namespace pawl::api
