#include "api/json.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include "api/problems.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

namespace json = boost::json;
using Kind = wire::Value::Kind;

json::value array_of(const wire::Value& value) {
  json::array items;
  for (const wire::Value& item : value.items) items.push_back(to_json(item));
  return items;
}

json::value object_of(const wire::Value& value) {
  json::object members;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
    members[value.items[i].text] = to_json(value.items[i + 1]);
  return members;
}

}  // namespace

json::value to_json(const wire::Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kInteger:
      return value.integer;
    case Kind::kReal:
      return value.real;
    case Kind::kBoolean:
      return value.integer != 0;
    case Kind::kSimple:
    case Kind::kText:
    case Kind::kError:
      return json::value(value.text);
    case Kind::kArray:
    case Kind::kPush:
      return array_of(value);
    case Kind::kMap:
      return object_of(value);
  }
  return nullptr;
}

http::Response json_response(int status, const json::value& body) {
  return {status, "application/json", json::serialize(body) + "\n"};
}

Body::Body(std::string_view text) {
  if (text.empty()) return;
  json::error_code error;
  json::value parsed = json::parse(text, error);
  if (error) {
    refuse("the body is not JSON: " + error.message());
  } else if (!parsed.is_object()) {
    refuse("the body must be a JSON object");
  } else {
    members_ = std::move(parsed.as_object());
  }
}

const json::value* Body::take(std::string_view name) {
  const auto found = members_.find(name);
  if (found == members_.end()) return nullptr;
  taken_ = std::move(found->value());
  members_.erase(found);
  return taken_.is_null() ? nullptr : &taken_;
}

void Body::refuse(std::string detail) {
  if (!wrong_) wrong_ = invalid(std::move(detail));
}

void Body::expected(std::string_view name, std::string_view what) {
  refuse(fmt::format("{} must be {}", name, what));
}

std::optional<std::string> Body::text(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->as_string());
  expected(name, "a string");
  return std::nullopt;
}

std::optional<bool> Body::boolean(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->as_bool();
  expected(name, "true or false");
  return std::nullopt;
}

std::optional<std::uint64_t> Body::number(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64() && value->as_int64() >= 0) return static_cast<std::uint64_t>(value->as_int64());
  expected(name,
           "a whole number, 0 or more");  // 1.0 and 1e3 are none: what they mean depends on who reads them.
  return std::nullopt;
}

std::vector<std::string> Body::texts(std::string_view name) {
  std::vector<std::string> texts;
  const json::value* value = take(name);
  if (value == nullptr) return texts;
  if (!value->is_array()) {
    expected(name, "an array of strings");
    return texts;
  }
  for (const json::value& item : value->as_array()) {
    if (!item.is_string()) {
      expected(name, "an array of strings");
      return {};
    }
    texts.emplace_back(item.as_string());
  }
  return texts;
}

std::vector<std::pair<std::string, std::string>> Body::pairs(std::string_view name) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const json::value* value = take(name);
  if (value == nullptr) return pairs;
  if (!value->is_object()) {
    expected(name, "an object of strings");
    return pairs;
  }
  for (const auto& member : value->as_object()) {
    if (!member.value().is_string()) {
      expected(name, "an object of strings");
      return {};
    }
    pairs.emplace_back(std::string(member.key()), std::string(member.value().as_string()));
  }
  return pairs;
}

std::optional<http::Problem> Body::finish() {
  if (!wrong_ && !members_.empty())
    refuse("unknown member " + wire::shown(std::string(members_.begin()->key())));
  return wrong_;
}

}  // namespace pawl::api
