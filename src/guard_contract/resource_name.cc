#include "guard_contract/resource_name.h"

#include <algorithm>

namespace pawl::guard {
namespace {

// Characters of UTF-8: every byte that does not continue one.
std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

Error invalid(std::string detail) {
  return {Code::kInvalid, "not a resource name: " + std::move(detail)};
}

}  // namespace

ResourceName split_resource(std::string_view resource) {
  const std::size_t colon = resource.find(':');
  if (colon == resource.npos) return {std::string(resource), {}};
  return {std::string(resource.substr(0, colon)), std::string(resource.substr(colon + 1))};
}

Result<ResourceName> parse_resource(std::string_view resource) {
  ResourceName name = split_resource(resource);
  if (name.guard.empty()) return invalid("the guard's name is missing; write GUARD or GUARD:KEY");
  if (std::any_of(name.guard.begin(), name.guard.end(), is_control))
    return invalid("the guard's name contains a control character");
  if (count_characters(name.guard) > kGuardNameMax)
    return invalid("the guard's name has more than 200 characters");
  if (name.key && count_characters(*name.key) > kResourceKeyMax)
    return invalid("the key has more than 512 characters");
  return name;
}

std::string to_text(const ResourceName& name) {
  return name.key ? name.guard + ":" + *name.key : name.guard;
}

}  // namespace pawl::guard
