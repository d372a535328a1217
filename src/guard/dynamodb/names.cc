#include "guard/dynamodb/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr int kDigitsMax = 38;
constexpr int kExponentMax = 130;

Error wrong(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

bool is_table_name(std::string_view text) {
  return text.size() >= 3 && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                  c == '.';
         });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ':') {
      escaped += "%3A";
    } else if (c == '%') {
      escaped += "%25";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    const std::string_view code = text.substr(at, 3);
    if (code != "%3A" && code != "%25") return std::nullopt;
    plain += code == "%3A" ? ':' : '%';
    at += 2;
  }
  return plain;
}

// One attribute of a key, as text.
Result<std::string> part_text(const json::object& fields, const std::string& attribute, char type) {
  const std::string_view text = text_of(fields, attribute, std::string_view(&type, 1));
  const auto* given = fields.if_contains(attribute);
  if (given == nullptr || text.empty())
    return wrong(fmt::format("the key attribute {} of type {} is missing", attribute, type));
  if (type == 'S') return std::string(text);
  auto number = canonical_number(text);
  if (!number) return wrong(fmt::format("the key attribute {} is not a number", attribute));
  return *std::move(number);
}

Result<json::value> part_value(std::string_view text, const std::string& attribute, char type) {
  if (text.empty()) return wrong(fmt::format("the key attribute {} is empty", attribute));
  if (type == 'N' && canonical_number(text) != text)
    return wrong(
        fmt::format("the key attribute {} is a number: it is spelled without sign +, "
                    "exponent, leading zeros, and zeros at the end of a fraction",
                    attribute));
  return json::value(json::object{{std::string_view(&type, 1), text}});
}

}  // namespace

std::string guard_item_name(std::string_view guard) {
  return std::string(kDynamoGuardPrefix) + std::string(guard);
}

std::string count_item_name(std::string_view guard) {
  return "count " + std::string(guard);
}

std::string_view dynamo_guard_of(std::string_view resource) {
  return resource.substr(0, resource.find(':'));
}

Result<DynamoPattern> parse_dynamo_pattern(std::string_view text) {
  const std::size_t slash = text.find('/');
  DynamoPattern pattern{std::string(text.substr(0, slash))};
  if (slash != text.npos) {
    std::string_view prefix = text.substr(slash + 1);
    if (!prefix.ends_with('*') || prefix.size() < 2 || has_control(prefix) ||
        prefix.find('*') != prefix.size() - 1)
      return wrong(
          "behind the / of a table is the beginning of partition keys and a `*`: shop/order#*");
    prefix.remove_suffix(1);
    pattern.prefix = prefix;
  }
  if (!is_table_name(pattern.table))
    return wrong(
        "under guard stands a table, or a table and the beginning of partition keys: "
        "orders, shop/order#*");
  return pattern;
}

std::string to_pattern(const DynamoItems& items) {
  return items.prefix.empty() ? items.table : fmt::format("{}/{}*", items.table, items.prefix);
}

bool overlap(const DynamoItems& one, const DynamoItems& other) {
  return one.table == other.table &&
         (one.prefix.starts_with(other.prefix) || other.prefix.starts_with(one.prefix));
}

Result<DynamoProtection> to_dynamo_protection(const Protection& wanted) {
  const auto pattern = parse_dynamo_pattern(wanted.table);
  if (!pattern) return pattern.error();
  DynamoProtection made{wanted.guard, DynamoScope::kStatic, *pattern};
  if (made.guard.empty()) {
    made.guard = pattern->prefix.empty() ? pattern->table : pattern->prefix;
    while (!made.guard.empty() && std::isalnum(static_cast<unsigned char>(made.guard.back())) == 0)
      made.guard.pop_back();
  }
  if (made.guard.empty() || made.guard.find(':') != made.guard.npos)
    return wrong(fmt::format("no guard can be named after {}: give --guard NAME", wanted.table));
  if (const auto name = parse_resource(made.guard); !name) return name.error();
  if (!wanted.by.empty())
    return wrong(
        "--by is for tables in SQL: in DynamoDB a guard has one fence, or with --key '*' "
        "one for each item");
  if (!wanted.key.empty() && wanted.key != "*")
    return wrong("in DynamoDB --key takes '*' only: each item is a resource of its own");
  if (!wanted.key.empty()) made.scope = DynamoScope::kRow;
  return made;
}

std::optional<std::string> canonical_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
        exponent > 2 * kExponentMax || exponent < -2 * kExponentMax)
      return std::nullopt;
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  if (point != text.npos) {
    const std::string_view fraction = text.substr(point + 1);
    digits += fraction;
    if (fraction.size() > 2 * kExponentMax) return std::nullopt;
    exponent -= static_cast<int>(fraction.size());
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  digits.erase(0, digits.find_first_not_of('0'));
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) return "0";
  if (digits.size() > kDigitsMax || exponent > kExponentMax || exponent < -kExponentMax)
    return std::nullopt;
  if (exponent >= 0) {
    digits.append(static_cast<std::size_t>(exponent), '0');
  } else {
    const auto behind = static_cast<std::size_t>(-exponent);
    if (digits.size() <= behind) digits.insert(0, behind - digits.size() + 1, '0');
    digits.insert(digits.size() - behind, 1, '.');
  }
  return negative ? "-" + digits : digits;
}

bool is_under(const DynamoItems& items, std::string_view table, const json::object& fields) {
  if (items.table != table) return false;
  return items.prefix.empty() || text_of(fields, items.hash, "S").starts_with(items.prefix);
}

Result<std::string> key_text(const DynamoItems& items, const json::object& fields) {
  auto hash = part_text(fields, items.hash, items.hash_type);
  if (!hash) return hash.error();
  std::string text = hash->substr(items.prefix.size());
  if (!items.range.empty()) {
    const auto range = part_text(fields, items.range, items.range_type);
    if (!range) return range.error();
    text = escape(text) + ":" + *range;
  }
  if (text.size() > kResourceKeyMax)
    return wrong(
        fmt::format("the key of an item under guard has at most {} characters", kResourceKeyMax));
  return text;
}

Result<json::object> key_fields(const DynamoItems& items, std::string_view key) {
  json::object fields;
  std::string_view hash = key;
  if (!items.range.empty()) {
    const std::size_t colon = key.find(':');
    if (colon == key.npos)
      return wrong(
          fmt::format("the key of an item in {} is {}:{}", items.table, items.hash, items.range));
    hash = key.substr(0, colon);
    auto range = part_value(key.substr(colon + 1), items.range, items.range_type);
    if (!range) return range.error();
    fields[items.range] = *std::move(range);
  }
  std::optional<std::string> plain(hash);
  if (!items.range.empty()) plain = unescape(hash);
  if (!plain) return wrong("in a key of two attributes % is %25, and : in the first is %3A");
  auto value = part_value(items.prefix + *plain, items.hash, items.hash_type);
  if (!value) return value.error();
  fields[items.hash] = *std::move(value);
  return fields;
}

json::object only_key(const DynamoItems& items, const json::object& fields) {
  json::object key;
  for (const std::string& attribute : {items.hash, items.range}) {
    if (const auto* value = fields.if_contains(attribute); value != nullptr && !attribute.empty())
      key[attribute] = *value;
  }
  return key;
}

}  // namespace pawl::guard
