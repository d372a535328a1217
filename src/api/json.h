// JSON in and out: replies as they came, and bodies read strictly.
//
//   Body body(asked.http.body);                       // must be one object, or nothing
//   const auto ttl = body.number("ttl_ms");
//   if (auto wrong = body.finish()) return *wrong;    // the first thing that is wrong, a member nobody asked for included
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/message.h"
#include "http/problem.h"
#include "wire/value.h"

namespace pawl::api {

// Maps become objects, tokens numbers. Bytes that are no UTF-8 cannot be in a reply of pawld.
[[nodiscard]] boost::json::value to_json(const wire::Value& value);
[[nodiscard]] http::Response json_response(int status, const boost::json::value& body);

class Body {
 public:
  explicit Body(std::string_view text);

  // Each answers nothing when the member is missing, or null; and notes it when the member is something else.
  std::optional<std::string> text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::uint64_t> number(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view name);
  void refuse(std::string detail);

  // After everything was read.
  [[nodiscard]] std::optional<http::Problem> finish();

 private:
  const boost::json::value* take(std::string_view name);
  void expected(std::string_view name, std::string_view what);

  boost::json::object members_;  // those nobody has asked for yet
  boost::json::value taken_;
  std::optional<http::Problem> wrong_;
};

}  // namespace pawl::api
