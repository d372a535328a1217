#include "sim/plan.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace pawl::sim {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

bool leave_out(std::string_view names, Plan& plan) {
  for (const std::string_view name : split(names, '+')) {
    const auto found = std::find(kTroubles.begin(), kTroubles.end(), name);
    if (found == kTroubles.end()) return false;
    plan.without |= 1U << static_cast<unsigned>(found - kTroubles.begin());
  }
  return true;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
  if (plan.clients != Plan{}.clients) add("clients=" + std::to_string(plan.clients));
  if (plan.plain != Plan{}.plain) add("plain=" + std::to_string(plan.plain));
  if (plan.observers != Plan{}.observers) add("observers=" + std::to_string(plan.observers));
  if (plan.nodes != Plan{}.nodes) add("nodes=" + std::to_string(plan.nodes));
  if (plan.storm_ms != Plan{}.storm_ms) add("storm=" + std::to_string(plan.storm_ms));
  std::string names;
  for (std::size_t i = 0; i < kTroubles.size(); ++i) {
    if ((plan.without >> i & 1) != 0)
      names += (names.empty() ? "" : "+") + std::string(kTroubles[i]);
  }
  if (!names.empty()) add("without=" + names);
  return text;
}

std::optional<Plan> plan_from_text(std::uint64_t seed, std::string_view text) {
  Plan plan;
  plan.seed = seed;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t at = part.find('=');
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view key = part.substr(0, at), value = part.substr(at + 1);
    const bool fine = key == "clients"     ? read(value, plan.clients)
                      : key == "plain"     ? read(value, plan.plain)
                      : key == "observers" ? read(value, plan.observers)
                      : key == "nodes"     ? read(value, plan.nodes)
                      : key == "storm"     ? read(value, plan.storm_ms)
                      : key == "without"   ? leave_out(value, plan)
                                           : false;
    if (!fine) return std::nullopt;
  }
  return plan;
}

}  // namespace pawl::sim
