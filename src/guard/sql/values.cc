#include "guard/sql/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace pawl::guard {

std::uint64_t to_number(const SqlValue& text) {
  std::uint64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

std::vector<std::string> lines_of(const SqlValue& text) {
  std::vector<std::string> lines;
  if (!text || text->empty()) return lines;
  for (std::size_t from = 0; from <= text->size();) {
    const std::size_t to = std::min(text->find('\n', from), text->size());
    lines.push_back(text->substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

Status to_status(const std::function<SqlValue(std::string_view column)>& value) {
  const auto text = [&](std::string_view column) { return value(column).value_or(""); };
  const auto number = [&](std::string_view column) { return to_number(value(column)); };
  Status status;
  status.guard = text("guard");
  status.kind = text("kind");
  status.strength = {Strength::kFenced, {}};
  status.tables = lines_of(value("tables"));
  status.mode = text("mode");
  if (value("percent")) status.percent = static_cast<int>(number("percent"));
  status.require_token = text("require_token") == "t" || text("require_token") == "1";
  status.equal = text("equal");
  status.max_step = number("max_step");
  if (value("fence")) status.fence = number("fence");
  status.floor = number("floor");
  status.replayed = number("replayed");
  status.stale = number("stale");
  status.missing = number("missing");
  status.ahead = number("ahead");
  status.malformed = number("malformed");
  status.would_refuse = number("would_refuse");
  return status;
}

Result<void> check_not_newer(const std::optional<Installation>& installed) {
  if (!installed || installed->contract <= kGuardContract) return {};
  return Error{Code::kInvalid,
               fmt::format("guard {} (contract {}) is installed here; this pawl knows contract {} "
                           "only. Use a newer pawl.",
                           installed->version, installed->contract, kGuardContract)};
}

Result<Installation> require_installation(const std::optional<Installation>& installed) {
  if (!installed) return Error{Code::kInvalid, "the script ran and installed nothing"};
  return *installed;
}

Error no_such_guard(std::string_view guard) {
  return {Code::kInvalid, fmt::format("there is no guard \"{}\" here", guard)};
}

}  // namespace pawl::guard
