#include "cli/reply.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/duration.h"
#include "base/text.h"

namespace pawl::cli {

std::string text_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  if (value == nullptr) return "-";
  if (const auto text = value->as_text()) return printable(*text);
  if (value->kind == wire::Value::Kind::kBoolean) return value->integer != 0 ? "yes" : "no";
  if (const auto integer = value->as_integer()) return std::to_string(*integer);
  return "-";
}

std::string owner_of(const wire::Value& map) {
  const std::string owner = text_of(map, "owner");
  return owner.empty() ? "(no owner given)" : owner;
}

std::optional<std::int64_t> integer_of(const wire::Value& map, std::string_view key) {
  const wire::Value* value = map.find(key);
  return value == nullptr ? std::nullopt : value->as_integer();
}

std::string duration_of(const wire::Value& map, std::string_view key) {
  const auto ms = integer_of(map, key);
  return ms ? to_text(Millis(*ms)) : "-";
}

std::string time_of(const wire::Value& map, std::string_view key) {
  const auto ms = integer_of(map, key);
  return ms ? time_text(UnixMs{static_cast<std::uint64_t>(*ms)}) : "-";
}

std::string time_text(UnixMs at) {
  const auto seconds = static_cast<std::time_t>(at.value / 1000);
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

const std::vector<wire::Value>& items_of(const wire::Value& map, std::string_view key) {
  static const std::vector<wire::Value> kNone;
  const wire::Value* value = map.find(key);
  return value == nullptr ? kNone : value->items;
}

std::string Table::text(bool with_heading) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string out;
  for (std::size_t r = with_heading ? 0 : 1; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      out += rows_[r][i];
      if (i + 1 < rows_[r].size()) out.append(widths[i] - columns(rows_[r][i]) + 2, ' ');
    }
    out.push_back('\n');
  }
  return out;
}

}  // namespace pawl::cli
