// What the administrations of guards behind SQL have in common: values as text, and how a row
// becomes an answer. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "guard/administration.h"

namespace pawl::guard {

// As text, or NULL.
using SqlValue = std::optional<std::string>;

// 0 for NULL.
[[nodiscard]] std::uint64_t to_number(const SqlValue& text);
// Names that were joined with line feeds, which none of them contains.
[[nodiscard]] std::vector<std::string> lines_of(const SqlValue& text);

// NULL for what was left out.
[[nodiscard]] inline SqlValue given(const std::string& text) {
  return text.empty() ? SqlValue{} : SqlValue{text};
}
template <class T>
[[nodiscard]] SqlValue given(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    return *value;
  } else {
    return std::to_string(*value);  // A bool is 0 or 1, which every database reads.
  }
}

// A row of the guard's own status; `value` gives a column by its name. Whether it is ready is left
// out.
[[nodiscard]] Status to_status(const std::function<SqlValue(std::string_view column)>& value);

// Refuses to put our contract where a newer one is.
[[nodiscard]] Result<void> check_not_newer(const std::optional<Installation>& installed);
// What is there once the script ran.
[[nodiscard]] Result<Installation> require_installation(
    const std::optional<Installation>& installed);
[[nodiscard]] Error no_such_guard(std::string_view guard);

}  // namespace pawl::guard
