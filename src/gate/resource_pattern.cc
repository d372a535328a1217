#include "gate/resource_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "gate/limits.h"

namespace pawl::gate {
namespace {

Error unusable(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

int hex_value(char c) {
  return c <= '9' ? c - '0' : c - 'A' + 10;
}

// Characters that are never encoded (RFC 3986, 2.3).
bool is_unreserved(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

Result<void> check_encoding(std::string_view path, std::size_t at) {
  if (at + 2 >= path.size() || !is_hex(path[at + 1]) || !is_hex(path[at + 2]))
    return unusable("a % is not followed by two digits 0-9, A-F");
  const int c = hex_value(path[at + 1]) * 16 + hex_value(path[at + 2]);
  if (is_unreserved(c) || c == '/' || c == '\\' || c == ';' || c < 0x20 || c == 0x7f)
    return unusable(fmt::format("{} may stand for itself or for {:?}", path.substr(at, 3),
                                std::string(1, static_cast<char>(c))));
  return {};
}

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return segments;
}

}  // namespace

Result<ResourcePattern> ResourcePattern::parse(std::string_view text) {
  constexpr std::string_view kPath = "path:";
  const auto invalid = [&](std::string_view why) {
    return unusable(
        fmt::format("\"{}\" is not a resource: {}; write e.g. path:/accounts/{{id}}", text, why));
  };
  if (!text.starts_with(kPath) || !text.substr(kPath.size()).starts_with('/'))
    return invalid("it does not begin with path:/");
  ResourcePattern pattern;
  std::string path;
  for (const std::string_view segment : segments_of(text.substr(kPath.size()))) {
    const bool any = segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
    if (!any && segment.find_first_of("{}?#*") != std::string_view::npos)
      return invalid("a segment is either fixed or one {name}");
    pattern.segments_.emplace_back(any ? "" : segment);
    path += fmt::format("/{}", any ? "any" : segment);
  }
  if (const auto right = canonical_path(path.empty() ? "/" : path); !right)
    return invalid(right.error().detail);
  return pattern;
}

std::optional<std::string> ResourcePattern::match(std::string_view path) const {
  const auto segments = segments_of(path);
  if (segments.size() < segments_.size()) return std::nullopt;
  std::string resource;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (!segments_[i].empty() && segments_[i] != segments[i]) return std::nullopt;
    resource += fmt::format("/{}", segments[i]);
  }
  return resource.empty() ? "/" : resource;
}

Result<std::string> canonical_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (path.empty() || path.front() != '/') return unusable("it does not begin with /");
  if (path.size() > limits::kGatePathMax)
    return unusable(fmt::format("it is longer than {} bytes", limits::kGatePathMax));
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' || path[i] == ';')
      return unusable(fmt::format("it has a {}", path[i] == ';' ? "semicolon" : "backslash"));
    if (path[i] != '%') continue;
    if (const auto right = check_encoding(path, i); !right) return right.error();
  }
  if (path == "/") return std::string(path);
  for (const std::string_view segment : segments_of(path)) {
    if (segment.empty() || segment == "." || segment == "..")
      return unusable("a segment is empty, . or ..");
  }
  if (path.back() == '/') return unusable("it ends with /");
  return std::string(path);
}

}  // namespace pawl::gate
