// The forms that Pawl's guards in databases come in, and the names that scratch tables and guards
// have: a ScratchSpace makes them, and sessions in other processes find them again. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::guard {

enum class Form : std::uint8_t {
  kAdmit,  // create_guard(name), and writers call admit() themselves
  kKeyed,  // create_guard(name, keyed), the same with a fence per key
  kTable,  // protect(table): triggers ask, and use() carries the token to them
  kRow,    // protect(table, key): each row is a resource
  kBy,     // protect(table, expression): rows share a resource
};
inline constexpr std::array kForms{Form::kAdmit, Form::kKeyed, Form::kTable, Form::kRow, Form::kBy};
// Their spelling, in the same order, for Kind::forms.
inline constexpr std::array<std::string_view, kForms.size()> kFormNames{"admit", "keyed", "table",
                                                                        "row", "by"};
[[nodiscard]] std::string_view to_text(Form form);
[[nodiscard]] std::optional<Form> parse_form(std::string_view text);

// How a table keeps effects.
enum class Layout : std::uint8_t {
  kLines,   // a row for each
  kOneRow,  // a row for each resource, which has them all
};

// The names of one ScratchSpace.
struct ScratchNames {
  Form form = Form::kAdmit;
  std::string name;    // Every guard and table of this space is named after it.
  std::string schema;  // its tables are in this schema; empty where there are no schemas

  // Each key has a fence of its own.
  [[nodiscard]] bool keyed() const;
  // Triggers judge every write; else only a write that asks is judged.
  [[nodiscard]] bool watched() const;

  // Those of the space that made this resource, by guard() or bare(). The resource is not checked.
  [[nodiscard]] static ScratchNames around(Form form, std::string_view resource);
  [[nodiscard]] std::string guard(std::uint64_t number) const;
  [[nodiscard]] std::string bare(std::uint64_t number) const;
  // The resource, through a larger table that its own has become a part of.
  [[nodiscard]] std::string larger(const std::string& resource) const;
  // Made by bare(): it is not under guard.
  [[nodiscard]] bool is_bare(std::string_view resource) const;

  [[nodiscard]] static std::string guard_of(const std::string& resource);
  // What a resource's effects are marked with in their table.
  [[nodiscard]] std::string key_of(const std::string& resource) const;
  // The table that a resource's effects are in: its guard's own, where tables are under guard.
  [[nodiscard]] std::string table_of(const std::string& resource) const;
  [[nodiscard]] Layout layout_of(const std::string& resource) const;
  // For the effects of resources without a table of their own.
  [[nodiscard]] std::string common_table() const;

 private:
  [[nodiscard]] std::string in_schema(const std::string& table) const;
  // It has a table under guard.
  [[nodiscard]] bool has_table(const std::string& resource) const;
};

}  // namespace pawl::guard
