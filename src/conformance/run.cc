#include "conformance/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pawl::conformance {
namespace {

// "spellings (its names are compared byte by byte)", where the guard says why.
std::string names(Abilities abilities, const Subject& subject, std::string_view separator) {
  std::vector<std::string> words;
  for (const Ability ability : abilities.list()) {
    const std::string why = subject.why_not(ability);
    words.push_back(fmt::format("{}{}", to_text(ability), why.empty() ? "" : " (" + why + ")"));
  }
  return fmt::format("{}", fmt::join(words, separator));
}

// Why the case makes no sense for this guard; empty: it does.
std::string ruled_out(const Case& wanted, const Subject& subject) {
  const Abilities has = subject.abilities();
  if (const Abilities lacks = wanted.needs.without(has); lacks.any())
    return "the guard has no " + names(lacks, subject, ", ");
  if (wanted.one_of.any() && !wanted.one_of.common(has).any())
    return "the guard has neither " + names(wanted.one_of, subject, " nor ");
  return {};
}

CaseResult run_one(Subject& subject, const Case& wanted, const RunOptions& options) {
  if (std::string why = ruled_out(wanted, subject); !why.empty())
    return {wanted, CaseEnd::kNotApplicable, std::move(why)};
  Trial trial(subject, options.seed, options.rounds);
  try {
    wanted.run(trial);
  } catch (Failed& failed) {
    return {wanted, CaseEnd::kFailed, std::move(failed.why)};
  }
  return {wanted, CaseEnd::kPassed, {}};
}

bool asked_for(const Case& offered, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), offered.name) != names.end();
}

}  // namespace

std::string_view to_text(CaseEnd end) {
  constexpr std::string_view kWords[] = {"passed", "failed", "not applicable"};
  return kWords[static_cast<std::size_t>(end)];
}

std::size_t Report::count(CaseEnd end) const {
  return static_cast<std::size_t>(std::count_if(
      results.begin(), results.end(), [&](const CaseResult& result) { return result.end == end; }));
}

std::string find_unknown(const std::vector<std::string>& names) {
  const std::vector<Case> all = all_cases();
  for (const std::string& name : names) {
    if (std::none_of(all.begin(), all.end(), [&](const Case& known) { return known.name == name; }))
      return name;
  }
  return {};
}

Report run(Subject& subject, const RunOptions& options,
           const std::function<void(const CaseResult&)>& report_case) {
  Report report{subject.name(), options.seed, {}};
  for (const Case& offered : all_cases()) {
    if (!asked_for(offered, options.cases)) continue;
    report.results.push_back(run_one(subject, offered, options));
    report_case(report.results.back());
  }
  return report;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto theme : {verdict_cases(), operation_cases(), mode_cases(), resource_cases(),
                           identity_cases(), reader_cases(), race_cases(), crash_cases()}) {
    all.insert(all.end(), theme.begin(), theme.end());
  }
  return all;
}

}  // namespace pawl::conformance
