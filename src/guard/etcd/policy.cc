#include "guard/etcd/policy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::array<std::string_view, 3> kEquals{"accept", "once", "refuse"};
constexpr std::array<std::string_view, 3> kScopes{"static", "row", "by"};
constexpr std::size_t kFenceDigits = 16;

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

bool set_whole(std::uint64_t& field, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), field);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

// False: the value is none for this name.
bool set_line(EtcdPolicy& policy, std::string_view name, std::string_view value) {
  if (name == "version") policy.version = value;
  if (name == "contract") policy.contract = value;
  if (name == "mode") return set(policy.mode, parse_mode(value));
  if (name == "percent") return set_whole(policy.percent, value);
  if (name == "require_token") policy.require_token = value == "on";
  if (name == "equal") return set(policy.equal, word_of<EtcdEqual>(kEquals, value));
  if (name == "max_step") return set_whole(policy.max_step, value);
  if (name == "floor") return set_whole(policy.floor, value);
  if (name == "kind") return set(policy.scope, word_of<EtcdScope>(kScopes, value));
  if (name == "by") policy.by = value;
  if (name == "change") return set_whole(policy.change, value);
  if (name == "since") return set_whole(policy.since, value);
  if (name == "missing_before") return set_whole(policy.missing_before, value);
  if (name == "would_refuse_before") return set_whole(policy.would_refuse_before, value);
  if (name == "keys") policy.keys.emplace_back(value);
  return true;
}

// Sixteen digits.
std::optional<std::uint64_t> fixed_number(std::string_view text) {
  if (text.size() != kFenceDigits || text.find_first_not_of("0123456789") != text.npos)
    return std::nullopt;
  std::uint64_t value = 0;
  set_whole(value, text);
  if (value > kEtcdTokenMax) return std::nullopt;
  return value;
}

}  // namespace

std::string_view to_text(EtcdEqual equal) {
  return kEquals.at(static_cast<std::size_t>(equal));
}

std::optional<EtcdEqual> parse_etcd_equal(std::string_view text) {
  return word_of<EtcdEqual>(kEquals, text);
}

std::string_view to_text(EtcdScope scope) {
  return kScopes.at(static_cast<std::size_t>(scope));
}

std::string to_text(const EtcdPolicy& policy) {
  std::string text = fmt::format(
      "version={}\ncontract={}\nmode={}\npercent={}\nrequire_token={}\nequal={}\nmax_step={}\n"
      "floor={}\nkind={}\nby={}\nchange={}\nsince={}\nmissing_before={}\nwould_refuse_before={}\n",
      policy.version, policy.contract, to_text(policy.mode), policy.percent,
      policy.require_token ? "on" : "off", to_text(policy.equal), policy.max_step, policy.floor,
      to_text(policy.scope), policy.by, policy.change, policy.since, policy.missing_before,
      policy.would_refuse_before);
  for (const std::string& pattern : policy.keys) text += fmt::format("keys={}\n", pattern);
  return text;
}

std::optional<EtcdPolicy> parse_etcd_policy(std::string_view text) {
  EtcdPolicy policy;
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

std::string to_text(const EtcdFence& fence) {
  std::string text = fmt::format("{:016}", fence.token);
  if (fence.operation) text += fmt::format(" {:016}", *fence.operation);
  return text;
}

std::optional<EtcdFence> parse_etcd_fence(std::string_view text) {
  const auto token = fixed_number(text.substr(0, kFenceDigits));
  if (!token) return std::nullopt;
  if (text.size() == kFenceDigits) return EtcdFence{*token, {}};
  if (text[kFenceDigits] != ' ') return std::nullopt;
  const auto operation = fixed_number(text.substr(kFenceDigits + 1));
  if (!operation) return std::nullopt;
  return EtcdFence{*token, operation};
}

std::string first_fence_of(std::uint64_t token) {
  return fmt::format("{:016}", token);
}

std::string end_of_fences_of(std::uint64_t token) {
  return fmt::format("{:016}~", token);  // `~` comes after the space.
}

}  // namespace pawl::guard
