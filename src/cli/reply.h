// Reading the maps in replies of pawld, for printing. Missing fields are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "wire/value.h"

namespace pawl::cli {

// Text, integers and booleans, made printable; "-" for null and for missing fields.
[[nodiscard]] std::string text_of(const wire::Value& map, std::string_view key);
// The label of a holder or waiter, or "(no owner given)".
[[nodiscard]] std::string owner_of(const wire::Value& map);
[[nodiscard]] std::optional<std::int64_t> integer_of(const wire::Value& map, std::string_view key);
// A field in milliseconds, as a duration for people.
[[nodiscard]] std::string duration_of(const wire::Value& map, std::string_view key);
// As local time, for people.
[[nodiscard]] std::string time_text(UnixMs at);
// A field in Unix milliseconds, as local time.
[[nodiscard]] std::string time_of(const wire::Value& map, std::string_view key);
[[nodiscard]] const std::vector<wire::Value>& items_of(const wire::Value& map,
                                                       std::string_view key);

// Aligned columns with two spaces between them.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  [[nodiscard]] std::string text(bool with_heading) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl::cli
