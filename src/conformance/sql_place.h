// The forms that Pawl's guards in databases come in, and the names that a Subject and its Sessions
// share. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::conformance {

enum class Form : std::uint8_t {
  kAdmit,  // create_guard(name), and writers who call admit() themselves
  kKeyed,  // create_guard(name, keyed), the same with a fence per key
  kTable,  // protect(table): triggers ask, and use() carries the token to them
  kRow,    // protect(table, key): each row is a resource
  kBy,     // protect(table, expression): rows share a resource
};
inline constexpr std::array kForms{Form::kAdmit, Form::kKeyed, Form::kTable, Form::kRow, Form::kBy};
[[nodiscard]] std::string_view to_text(Form form);
[[nodiscard]] std::optional<Form> parse_form(std::string_view text);

// How a table keeps effects.
enum class Layout : std::uint8_t {
  kLines,   // a row for each
  kOneRow,  // a row for each resource, which has them all
};

// Where a form keeps what it guards.
struct Place {
  Form form = Form::kAdmit;
  std::string name;    // What every guard and table of this subject is named after.
  std::string schema;  // that its tables are in; empty where there are none

  // Each key has a fence of its own.
  [[nodiscard]] bool keyed() const;
  // Triggers judge; else only those who ask are judged.
  [[nodiscard]] bool watched() const;

  // The place that made this resource, by guard() or bare(); what it is not, nobody can tell.
  [[nodiscard]] static Place around(Form form, std::string_view resource);
  [[nodiscard]] std::string guard(std::uint64_t number) const;
  [[nodiscard]] std::string bare(std::uint64_t number) const;
  // Made by bare(): nobody guards it.
  [[nodiscard]] bool is_bare(std::string_view resource) const;

  // The guard of a resource: what stands before the first ':'.
  [[nodiscard]] static std::string guard_of(const std::string& resource);
  // What a resource's effects are marked with in their table.
  [[nodiscard]] std::string key_of(const std::string& resource) const;
  // The table that a resource's effects are in: of its guard's own, where tables are under guard.
  [[nodiscard]] std::string table_of(const std::string& resource) const;
  [[nodiscard]] Layout layout_of(const std::string& resource) const;
  // For the effects of what is in no table under guard.
  [[nodiscard]] std::string common_table() const;

 private:
  [[nodiscard]] std::string in_schema(const std::string& table) const;
  // It has a table under guard.
  [[nodiscard]] bool has_table(const std::string& resource) const;
};

}  // namespace pawl::conformance
