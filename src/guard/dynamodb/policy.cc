#include "guard/dynamodb/policy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/limits.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::array<std::string_view, 3> kEquals{"accept", "once", "refuse"};
constexpr std::array<std::string_view, 2> kScopes{"static", "row"};

template <class Word, std::size_t n>
std::optional<Word> word_of(const std::array<std::string_view, n>& words, std::string_view text) {
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

template <class T>
bool set(T& field, const std::optional<T>& value) {
  if (value) field = *value;
  return value.has_value();
}

// TABLE HASH TYPE RANGE TYPE PREFIX, with `- -` where there is no range.
std::string to_line(const DynamoItems& items) {
  const std::string range =
      items.range.empty() ? "- -" : fmt::format("{} {}", items.range, items.range_type);
  return fmt::format("{} {} {} {} {}", items.table, items.hash, items.hash_type, range,
                     items.prefix);
}

std::optional<DynamoItems> parse_items(std::string_view line) {
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) {
    const std::size_t space = line.find(' ');
    if (space == 0 || space == line.npos) return std::nullopt;
    word = line.substr(0, space);
    line.remove_prefix(space + 1);
  }
  const auto is_type = [](std::string_view text) { return text == "S" || text == "N"; };
  const bool no_range = words[3] == "-" && words[4] == "-";
  if (!is_type(words[2]) || !(no_range || is_type(words[4]))) return std::nullopt;
  DynamoItems items{std::string(words[0]), std::string(words[1]), words[2].front()};
  if (!no_range) {
    items.range = words[3];
    items.range_type = words[4].front();
  }
  items.prefix = line;
  return items;
}

// False: the value is none for this name.
bool set_line(DynamoPolicy& policy, std::string_view name, std::string_view value) {
  if (name == "version") policy.version = value;
  if (name == "contract") policy.contract = value;
  if (name == "mode") return set(policy.mode, parse_mode(value));
  if (name == "percent") return set(policy.percent, parse_whole(value));
  if (name == "require_token") policy.require_token = value == "on";
  if (name == "equal") return set(policy.equal, parse_dynamo_equal(value));
  if (name == "max_step") return set(policy.max_step, parse_whole(value));
  if (name == "floor") return set(policy.floor, parse_whole(value));
  if (name == "kind") return set(policy.scope, word_of<DynamoScope>(kScopes, value));
  if (name == "since") return set(policy.since, parse_whole(value));
  if (name == "missing_before") return set(policy.missing_before, parse_whole(value));
  if (name == "would_refuse_before") return set(policy.would_refuse_before, parse_whole(value));
  if (name == "items") {
    const auto items = parse_items(value);
    if (items) policy.items.push_back(*items);
    return items.has_value();
  }
  return true;
}

}  // namespace

std::string_view to_text(DynamoScope scope) {
  return kScopes.at(static_cast<std::size_t>(scope));
}

std::optional<Equal> parse_dynamo_equal(std::string_view text) {
  return word_of<Equal>(kEquals, text);
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() ||
      value > limits::kTokenMax || (text.front() == '0' && text.size() > 1))
    return std::nullopt;
  return value;
}

std::string to_text(const DynamoPolicy& policy) {
  std::string text = fmt::format(
      "version={}\ncontract={}\nmode={}\npercent={}\nrequire_token={}\nequal={}\nmax_step={}\n"
      "floor={}\nkind={}\nsince={}\nmissing_before={}\nwould_refuse_before={}\n",
      policy.version, policy.contract, to_text(policy.mode), policy.percent,
      policy.require_token ? "on" : "off", kEquals.at(static_cast<std::size_t>(policy.equal)),
      policy.max_step, policy.floor, to_text(policy.scope), policy.since, policy.missing_before,
      policy.would_refuse_before);
  for (const DynamoItems& items : policy.items) text += fmt::format("items={}\n", to_line(items));
  return text;
}

std::optional<DynamoPolicy> parse_dynamo_policy(std::string_view text) {
  DynamoPolicy policy;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t equals = line.find('=');
    if (equals == line.npos) return std::nullopt;
    if (!set_line(policy, line.substr(0, equals), line.substr(equals + 1))) return std::nullopt;
  }
  if (policy.contract.empty()) return std::nullopt;
  return policy;
}

std::string_view text_of(const boost::json::object& item, std::string_view attribute,
                         std::string_view type) {
  const auto* value = item.if_contains(attribute);
  const auto* typed = value == nullptr ? nullptr : value->if_object();
  const auto* text = typed == nullptr ? nullptr : typed->if_contains(type);
  if (text == nullptr || !text->is_string()) return {};
  return text->get_string();
}

std::optional<DynamoFence> read_fence(const boost::json::object& item) {
  DynamoFence fence{.nonce = std::string(text_of(item, "pawl_nonce", "S"))};
  if (item.contains("pawl_token")) {
    const auto token = parse_whole(text_of(item, "pawl_token", "N"));
    if (!token || *token == 0) return std::nullopt;
    fence.token = *token;
  }
  if (item.contains("pawl_op")) {
    fence.operation = parse_whole(text_of(item, "pawl_op", "N"));
    if (!fence.operation || fence.token == 0) return std::nullopt;
  }
  return fence;
}

}  // namespace pawl::guard
