#include "drill/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pawl::drill {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += ' ';
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += "\xef\xbf\xbd";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string span_text(Moment span) {
  const double ms = static_cast<double>(span.count()) / 1e6;
  const double size = std::abs(ms);
  if (size < 10) return fmt::format("{:.1f}\u00a0ms", ms);
  if (size < 999.5) return fmt::format("{:.0f}\u00a0ms", ms);
  if (size < 9'995) return fmt::format("{:.2f}\u00a0s", ms / 1e3);
  if (size < 99'950) return fmt::format("{:.1f}\u00a0s", ms / 1e3);
  return fmt::format("{:.0f}\u00a0s", ms / 1e3);
}

std::string_view fate_word(Fate fate) {
  switch (fate) {
    case Fate::kAdmitted:
      return "admitted";
    case Fate::kRefused:
      return "refused";
    case Fate::kLetThrough:
      return "got through";
    case Fate::kWithheld:
      return "not sent";
    case Fate::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view fault_word(FaultKind kind) {
  switch (kind) {
    case FaultKind::kFrozen:
      return "frozen";
    case FaultKind::kCut:
      return "cut off";
    case FaultKind::kKilled:
      return "killed";
    case FaultKind::kRestarted:
      return "restarted";
    case FaultKind::kClockStepped:
      return "clock stepped";
    case FaultKind::kRestored:
      return "restored";
    case FaultKind::kDelayed:
      break;
  }
  return "delayed";
}

std::vector<std::string> workers_of(const DrillRecord& record) {
  std::vector<std::pair<Moment, std::string>> seen;
  for (const Ownership& ownership : record.ownerships)
    seen.emplace_back(ownership.from, ownership.worker);
  for (const Belief& belief : record.beliefs) seen.emplace_back(belief.from, belief.worker);
  for (const Write& write : record.writes) seen.emplace_back(write.sent, write.worker);
  for (const Fault& fault : record.faults) seen.emplace_back(fault.from, fault.target);
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<std::string> workers;
  for (auto& [at, name] : seen) {
    if (name == "pawld" || std::find(workers.begin(), workers.end(), name) != workers.end())
      continue;
    workers.push_back(std::move(name));
  }
  return workers;
}

double text_width(std::string_view text) {
  constexpr double kLetter = 7.0;  // at a font size of 12 pixels
  const auto letters = std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;  // not a continuation byte
  });
  return static_cast<double>(letters) * kLetter;
}

std::string fitting(const std::vector<std::string>& choices, double width) {
  for (const std::string& choice : choices) {
    if (text_width(choice) + 8 <= width) return choice;
  }
  return {};
}

std::string svg_text(std::string_view css_class, double x, double y, std::string_view words) {
  return words.empty() ? std::string()
                       : fmt::format("<text class='{}' x='{:.1f}' y='{:.1f}'>{}</text>\n",
                                     css_class, x, y, escaped(words));
}

std::string svg_title(std::string_view words) {
  return fmt::format("<title>{}</title>", escaped(words));
}

}  // namespace pawl::drill
