#include "base/duration.h"

#include <fmt/format.h>
#include <algorithm>

#include <charconv>
#include <cstdint>
#include <limits>

namespace pawl {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};
constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}};

Error malformed(std::string_view text, std::string_view why) {
  return {Code::kInvalid, fmt::format("\"{}\" {}", text, why)};
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit_name = text.substr(digits);
  if (digits == 0) return malformed(text, "is not a duration; write one like 250ms, 15s, 5m or 1h");
  if (unit_name.empty())
    return malformed(text, fmt::format("has no unit; write {0}s or {0}ms", text));
  std::int64_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, count);
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    if (parsed.ec != std::errc{} || count > std::numeric_limits<std::int32_t>::max()) {
      return malformed(text, "is too long");
    }
    return Millis(count * unit.millis);
  }
  return malformed(text, "has an unknown unit; write ms, s, m or h after a whole number");
}

std::string to_text(Millis span) {
  const std::int64_t ms = std::max<std::int64_t>(span.count(), 0);
  const std::int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60,
                     days = hours / 24;
  if (seconds == 0) return fmt::format("{}ms", ms);
  if (minutes == 0 && ms % 1000 >= 100) return fmt::format("{}.{}s", seconds, ms % 1000 / 100);
  if (minutes == 0) return fmt::format("{}s", seconds);
  if (hours == 0) return fmt::format("{}m{:02}s", minutes, seconds % 60);
  if (days < 2) return fmt::format("{}h{:02}m", hours, minutes % 60);
  return fmt::format("{}d{:02}h", days, hours % 24);
}

}  // namespace pawl
