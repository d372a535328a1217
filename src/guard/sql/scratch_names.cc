#include "guard/sql/scratch_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard_contract/resource_name.h"

namespace pawl::guard {
std::string_view to_text(Form form) {
  return kFormNames.at(static_cast<std::size_t>(form));
}

std::optional<Form> parse_form(std::string_view text) {
  for (const Form form : kForms) {
    if (to_text(form) == text) return form;
  }
  return std::nullopt;
}

bool ScratchNames::keyed() const {
  return form == Form::kKeyed || form == Form::kRow || form == Form::kBy;
}

bool ScratchNames::watched() const {
  return form == Form::kTable || form == Form::kRow || form == Form::kBy;
}

ScratchNames ScratchNames::around(Form form, std::string_view resource) {
  std::string name = guard_of(std::string(resource));
  name.resize(std::min(name.find_last_not_of("0123456789"), name.size()));
  if (constexpr std::string_view kBare = "_bare"; name.ends_with(kBare))
    name.resize(name.size() - kBare.size());
  return {form, name, ""};
}

std::string ScratchNames::guard(std::uint64_t number) const {
  return fmt::format("{}_{}", name, number);
}

std::string ScratchNames::bare(std::uint64_t number) const {
  return fmt::format("{}_bare_{}", name, number);
}

std::string ScratchNames::larger(const std::string& resource) const {
  const auto parts = split_resource(resource);
  return fmt::format("{}_larger{}", parts.guard, parts.key ? ":" + *parts.key : "");
}

bool ScratchNames::is_bare(std::string_view resource) const {
  return resource.starts_with(name + "_bare_");
}

std::string ScratchNames::guard_of(const std::string& resource) {
  return split_resource(resource).guard;
}

std::string ScratchNames::key_of(const std::string& resource) const {
  return watched() ? split_resource(resource).key.value_or(resource) : resource;
}

std::string ScratchNames::table_of(const std::string& resource) const {
  return has_table(resource) ? in_schema(guard_of(resource)) : common_table();
}

Layout ScratchNames::layout_of(const std::string& resource) const {
  return has_table(resource) && form == Form::kRow ? Layout::kOneRow : Layout::kLines;
}

std::string ScratchNames::common_table() const {
  return in_schema(name + "_effects");
}

std::string ScratchNames::in_schema(const std::string& table) const {
  return schema.empty() ? table : schema + "." + table;
}

bool ScratchNames::has_table(const std::string& resource) const {
  return watched() && !is_bare(resource);
}

}  // namespace pawl::guard
