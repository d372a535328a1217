#include "conformance/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace pawl::conformance {
namespace {

using Said = std::vector<std::string>;

void check_order(const std::vector<Effect>& effects, Said& said) {
  std::uint64_t greatest = 0;
  for (const Effect& effect : effects) {
    if (effect.token < greatest)
      said.push_back(fmt::format("{} took effect with token {} after one with token {}",
                                 effect.value, effect.token, greatest));
    greatest = std::max(greatest, effect.token);
  }
}

void check_each(const std::vector<Deed>& deeds, const std::vector<Effect>& effects, Said& said) {
  std::map<std::string, std::vector<std::uint64_t>> tokens;  // by value
  for (const Effect& effect : effects) tokens[effect.value].push_back(effect.token);
  for (const Deed& deed : deeds) {
    if (deed.kind != Deed::Kind::kWrite) continue;
    const auto found = tokens.extract(deed.value);
    const std::size_t times = found.empty() ? 0 : found.mapped().size();
    const bool open = deed.answer == Answer::kUnknown;
    if (open ? times > 1 : times != (deed.counts ? 1U : 0U))
      said.push_back(fmt::format("{} with token {} was answered \"{}\" and took effect {} times",
                                 deed.value, deed.token, to_text(deed.answer), times));
    if (times > 0 && found.mapped().front() != deed.token)
      said.push_back(fmt::format("{} was written with token {} and is recorded with {}", deed.value,
                                 deed.token, found.mapped().front()));
  }
  for (const auto& [value, unused] : tokens)
    said.push_back(fmt::format("{} took effect, but no writer sent it", value));
}

// Sweeps over time: at each beginning, the greatest token that had been answered by then.
void check_real_time(const std::vector<Deed>& deeds, Said& said) {
  struct Moment {
    std::uint64_t stamp;
    bool begins;
    const Deed* deed;
  };
  std::vector<Moment> moments;
  for (const Deed& deed : deeds) {
    if (!deed.counts) continue;
    if (deed.kind == Deed::Kind::kWrite) moments.push_back({deed.began, true, &deed});
    moments.push_back({deed.answered, false, &deed});
  }
  std::sort(moments.begin(), moments.end(),
            [](const Moment& a, const Moment& b) { return a.stamp < b.stamp; });
  std::uint64_t greatest = 0;
  for (const Moment& moment : moments) {
    if (moment.begins && moment.deed->token < greatest)
      said.push_back(fmt::format(
          "{} with token {} was begun after token {} had been answered, and took effect",
          moment.deed->value, moment.deed->token, greatest));
    if (!moment.begins) greatest = std::max(greatest, moment.deed->token);
  }
}

}  // namespace

std::vector<std::string> violations(const std::vector<Deed>& deeds,
                                    const std::vector<Effect>& effects) {
  Said said;
  check_order(effects, said);
  check_each(deeds, effects, said);
  check_real_time(deeds, said);
  return said;
}

}  // namespace pawl::conformance
