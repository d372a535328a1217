// Judges a history that any harness has written (history_json.h):
//
//   check_history [--json] FILE        "-" is standard input
//
// Exit codes: 0 every property holds, 1 one is violated, 64 usage, 65 the file is no history.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "sim/checker.h"
#include "sim/history_json.h"

namespace pawl::sim {
namespace {

struct Property {
  std::string_view name, says;
};
constexpr std::array kProperties{
    Property{"P1", "no token twice, no request with two"},
    Property{"P2", "a later request has the greater token"},
    Property{"P3", "nothing passes on before it can have run out"},
    Property{"P4", "what is over is never found alive"},
    Property{"P5", "resources refuse what is stale, and only that"},
    Property{"P6", "every start is above every token handed out"},
    Property{"P7", "once healed, everyone is served"},
    Property{"P8", "a request asked again gets the recorded answer"},
    Property{"G2", "no lease is reported lost before its time"},
    Property{"G6", "no waiter is overtaken"},
    Property{"G7", "no two believe to hold what one may"},
    Property{"MH", "no client is promised time beyond its MAXHOLD"},
    Property{"EL", "no observer sees a leader go back"},
};

// What is not asked of a history does not hold, it is only not looked at.
bool judged(std::string_view property, const History& history) {
  constexpr std::string_view kByClock = "P3 G2 G7 MH", kByTokens = "P1 P2 P5 P6";
  if (property == "P7" && history.calm == kOpen) return false;
  if (history.demand == Demand::kTokensOnly)
    return kByTokens.find(property) != std::string_view::npos;
  return history.demand == Demand::kAll || kByClock.find(property) == std::string_view::npos;
}

constexpr std::string_view kUsage =
    "usage: check_history [--json] FILE\n"
    "Judges a history, one JSON object a line, by the properties P1-P8; \"-\" reads standard "
    "input.\n"
    "example: check_history run.jsonl\n"
    "exit: 0 all hold, 1 one is violated, 64 usage, 65 no history\n";

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

void print_table(const History& history, const Faults& faults) {
  fmt::print("{} attempts, {} renewals, {} releases, {} effects, {} starts\n",
             history.attempts.size(), history.renewals.size(), history.releases.size(),
             history.effects.size(), history.starts.size());
  for (const Property& property : kProperties) {
    const auto broken = std::count_if(faults.begin(), faults.end(), [&](const auto& fault) {
      return fault.starts_with(property.name);
    });
    fmt::print("{}  {:<50} {}\n", property.name, property.says,
               broken != 0                      ? fmt::format("VIOLATED {} times", broken)
               : judged(property.name, history) ? "holds"
                                                : "not judged");
  }
  for (const std::string& fault : faults) fmt::print("{}\n", fault);
}

void print_json(const Faults& faults) {
  std::string list;
  for (const std::string& fault : faults) list += (list.empty() ? "" : ",") + json_string(fault);
  fmt::print("{{\"holds\":{},\"faults\":[{}]}}\n", faults.empty(), list);
}

int run(const std::string& path, bool as_json) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  if (!in) {
    fmt::print(stderr, "check_history: {}: cannot be read\n", path);
    return 65;
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const Result<History> history = history_from_json_lines(text);
  if (!history) {
    fmt::print(stderr, "check_history: {}: {}\n", path, history.error().detail);
    return 65;
  }
  const Faults faults = check(*history);
  as_json ? print_json(faults) : print_table(*history, faults);
  return faults.empty() ? 0 : 1;
}

}  // namespace
}  // namespace pawl::sim

int main(int argc, char** argv) {
  bool as_json = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      fmt::print("{}", pawl::sim::kUsage);
      return 0;
    }
    if (word == "--json") {
      as_json = true;
    } else if (path.empty() && (word == "-" || !word.starts_with("-"))) {
      path = word;
    } else {
      path.clear();
      break;
    }
  }
  if (path.empty()) {
    fmt::print(stderr, "{}", pawl::sim::kUsage);
    return 64;
  }
  return pawl::sim::run(path, as_json);
}
