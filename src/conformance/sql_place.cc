#include "conformance/sql_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::conformance {
namespace {

constexpr std::array<std::string_view, kForms.size()> kWords{"admit", "keyed", "table", "row",
                                                             "by"};

}  // namespace

std::string_view to_text(Form form) {
  return kWords.at(static_cast<std::size_t>(form));
}

std::optional<Form> parse_form(std::string_view text) {
  for (const Form form : kForms) {
    if (to_text(form) == text) return form;
  }
  return std::nullopt;
}

bool Place::keyed() const {
  return form == Form::kKeyed || form == Form::kRow || form == Form::kBy;
}

bool Place::watched() const {
  return form == Form::kTable || form == Form::kRow || form == Form::kBy;
}

Place Place::around(Form form, std::string_view resource) {
  std::string name = guard_of(std::string(resource));
  name.resize(std::min(name.find_last_not_of("0123456789"), name.size()));
  if (constexpr std::string_view kBare = "_bare"; name.ends_with(kBare))
    name.resize(name.size() - kBare.size());
  return {form, name, ""};
}

std::string Place::guard(std::uint64_t number) const {
  return fmt::format("{}_{}", name, number);
}

std::string Place::bare(std::uint64_t number) const {
  return fmt::format("{}_bare_{}", name, number);
}

bool Place::is_bare(std::string_view resource) const {
  return resource.starts_with(name + "_bare_");
}

std::string Place::guard_of(const std::string& resource) {
  return resource.substr(0, resource.find(':'));
}

std::string Place::key_of(const std::string& resource) const {
  const std::size_t colon = resource.find(':');
  return !watched() || colon == resource.npos ? resource : resource.substr(colon + 1);
}

std::string Place::table_of(const std::string& resource) const {
  return has_table(resource) ? in_schema(guard_of(resource)) : common_table();
}

Layout Place::layout_of(const std::string& resource) const {
  return has_table(resource) && form == Form::kRow ? Layout::kOneRow : Layout::kLines;
}

std::string Place::common_table() const {
  return in_schema(name + "_effects");
}

std::string Place::in_schema(const std::string& table) const {
  return schema.empty() ? table : schema + "." + table;
}

bool Place::has_table(const std::string& resource) const {
  return watched() && !is_bare(resource);
}

}  // namespace pawl::conformance
