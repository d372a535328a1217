// JSON in and out: replies as they came, and bodies read strictly.
//
//   Body body(asked.http.body, {"ttl_ms", "owner"});  // must be one object, no other members
//   const auto ttl = body.number("ttl_ms", {100, 600000});
//   if (auto wrong = body.finish()) return *wrong;    // the first thing that is wrong
//
// Errors are reported in this order: the body is not an object, a member is given twice, a member
// is unknown, then whatever a read found, in the order of the reads.
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
#include "wire/value.h"

namespace pawl::api {

// Maps become objects, tokens numbers. pawld's replies are always valid UTF-8.
[[nodiscard]] boost::json::value to_json(const wire::Value& value);
[[nodiscard]] http::Response json_response(int status, const boost::json::value& body);

// "; did you mean ttl_ms?" for ttl, wait_mss or ttlMs; otherwise the names that there are.
[[nodiscard]] std::string suggestion(std::string_view name,
                                     const std::vector<std::string_view>& known);

// The first member that an object in `text` has twice. `text` must be valid JSON.
[[nodiscard]] std::optional<std::string> member_given_twice(std::string_view text);

// Of a number, or of a text's length in bytes.
struct Bounds {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

// What is wrong with a text of the request, which it knows by `name`.
[[nodiscard]] std::optional<http::Problem> wrong_text(std::string_view name, std::string_view text,
                                                      Bounds bytes);

class Body {
 public:
  // `members`: all that the route takes. An empty text is right only where there are none.
  Body(std::string_view text, const std::vector<std::string_view>& members);

  // Each answers nothing when the member is missing, or null; and notes it when the member is
  // something else.
  std::optional<std::string> text(std::string_view name, Bounds bytes);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::uint64_t> number(std::string_view name, Bounds range);
  std::vector<std::string> texts(std::string_view name);
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view name);
  void refuse(std::string detail);
  void refuse(http::Problem problem);

  // After everything was read.
  [[nodiscard]] const std::optional<http::Problem>& finish() const { return wrong_; }

 private:
  void read(std::string_view text, const std::vector<std::string_view>& members);
  [[nodiscard]] const boost::json::value* find(std::string_view name) const;
  void expected(std::string_view name, std::string_view what);

  boost::json::object members_;
  std::optional<http::Problem> wrong_;
};

}  // namespace pawl::api
