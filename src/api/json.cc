#include "api/json.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

// "ttlMs", "ttl-ms" and "TTL_MS" are all meant as ttl_ms.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_' && c != '-') letters += wire::to_lower(c);
  }
  return letters;
}

// How many letters must be inserted, removed or replaced to make one of the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool is_like(std::string_view name, std::string_view known) {
  constexpr std::size_t kShortest = 3, kLongest = 64, kEdits = 2;
  const std::string a = letters_of(name), b = letters_of(known);
  if (a.size() < kShortest || b.size() < kShortest || a.size() > kLongest) return false;
  return b.starts_with(a) || a.starts_with(b) || edits_between(a, b) <= kEdits;
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

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
  if (known.empty()) return "; this route takes none";
  const auto like = std::find_if(known.begin(), known.end(),
                                 [&](std::string_view k) { return is_like(name, k); });
  if (like != known.end()) return fmt::format("; did you mean {}?", *like);
  return fmt::format("; expected one of {}", fmt::join(known, ", "));
}

// Boost.JSON keeps the last of two members with one name, in silence. Two readers of such a body
// may disagree about what it says, so pawld takes neither.
std::optional<std::string> member_given_twice(std::string_view text) {
  std::vector<std::set<std::string>>
      open;  // the members of the objects and arrays around this place
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') open.emplace_back();
    if (text[at] == '}' || text[at] == ']') open.pop_back();
    if (text[at] != '"') continue;
    const std::size_t begin = at++;
    while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    if (next == std::string_view::npos || text[next] != ':') continue;  // A value.
    const json::value name = json::parse(text.substr(begin, at + 1 - begin));
    if (!open.back().emplace(name.as_string()).second) return std::string(name.as_string());
  }
  return std::nullopt;
}

std::optional<http::Problem> wrong_text(std::string_view name, std::string_view text,
                                        Bounds bytes) {
  if (text.size() > bytes.max)
    return too_long(fmt::format("{} takes at most {} bytes, got {}", name, bytes.max, text.size()));
  if (text.size() < bytes.min) {
    return invalid(
        fmt::format("{} must be {} to {} bytes, got {}", name, bytes.min, bytes.max, text.size()));
  }
  if (!wire::is_plain_text(text))
    return invalid(fmt::format("{} must be UTF-8 without control characters", name));
  return std::nullopt;
}

Body::Body(std::string_view text, const std::vector<std::string_view>& members) {
  read(text, members);
}

void Body::read(std::string_view text, const std::vector<std::string_view>& members) {
  if (text.empty()) {
    if (!members.empty())
      refuse(fmt::format("the body is empty; it must be a JSON object with {}",
                         fmt::join(members, ", ")));
    return;
  }
  json::error_code error;
  json::value parsed = json::parse(text, error);
  if (error) return refuse("the body is not JSON: " + error.message());
  if (!parsed.is_object()) return refuse("the body must be a JSON object");
  if (const auto twice = member_given_twice(text))
    return refuse(fmt::format("the member {} is given twice", wire::shown(*twice)));
  members_ = std::move(parsed.as_object());
  for (const auto& member : members_) {
    const std::string_view name = member.key();
    if (std::find(members.begin(), members.end(), name) == members.end())
      return refuse(
          fmt::format("unknown member {}{}", wire::shown(name), suggestion(name, members)));
  }
}

const json::value* Body::find(std::string_view name) const {
  const json::value* found = members_.if_contains(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void Body::refuse(http::Problem problem) {
  if (!wrong_) wrong_ = std::move(problem);
}

void Body::refuse(std::string detail) {
  refuse(invalid(std::move(detail)));
}

void Body::expected(std::string_view name, std::string_view what) {
  refuse(fmt::format("{} must be {}", name, what));
}

std::optional<std::string> Body::text(std::string_view name, Bounds bytes) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    expected(name, "a string");
    return std::nullopt;
  }
  if (auto wrong = wrong_text(name, value->as_string(), bytes)) refuse(std::move(*wrong));
  return std::string(value->as_string());
}

std::optional<bool> Body::boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->as_bool();
  expected(name, "true or false");
  return std::nullopt;
}

std::optional<std::uint64_t> Body::number(std::string_view name, Bounds range) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_int64() ||
      value->as_int64() < 0) {  // 1.0 and 1e3 are refused: parsers disagree about them.
    expected(name, fmt::format("a whole number, {} to {}", range.min, range.max));
    return std::nullopt;
  }
  const auto number = static_cast<std::uint64_t>(value->as_int64());
  if (number < range.min || number > range.max)
    expected(name, fmt::format("{} to {}, got {}", range.min, range.max, number));
  return number;
}

std::vector<std::string> Body::texts(std::string_view name) {
  std::vector<std::string> texts;
  const json::value* value = find(name);
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
  const json::value* value = find(name);
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

}  // namespace pawl::api
