#include "http/message.h"

#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace pawl::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string date_text(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(time - day));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()),
                     kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      headers.begin(), headers.end(), [&](const Header& h) { return same_word(h.name, name); }));
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  if (count(name) != 1) return std::nullopt;
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const Header& h) { return same_word(h.name, name); });
  PAWL_ASSERT(found != headers.end());
  return found->value;
}

Response to_response(const Problem& problem) {
  // 307: ask elsewhere.
  PAWL_ASSERT(problem.status >= 307 && problem.status < 600 && !problem.code.empty());
  boost::json::object body{{"type", "urn:pawl:problem:" + problem.code},
                           {"title", problem.title},
                           {"status", problem.status},
                           {"detail", problem.detail},
                           {"code", problem.code},
                           {"retryable", problem.retry == Retry::kLater}};
  for (const auto& member : problem.more) body.insert(member);
  return {problem.status, "application/problem+json", boost::json::serialize(body) + "\n",
          problem.headers};
}

}  // namespace pawl::http
