#include "drill/worker_messages.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace pawl::drill {

bool LineReader::read(int fd) {
  std::array<char, 4096> bytes;
  ssize_t got = 0;
  do got = ::read(fd, bytes.data(), bytes.size());
  while (got < 0 && errno == EINTR);
  if (got > 0) bytes_.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::optional<std::string> LineReader::next() {
  const std::size_t end = bytes_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return line;
}

std::optional<json::object> parse(std::string_view line) {
  boost::system::error_code error;
  json::value value = json::parse({line.data(), line.size()}, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

std::string text(const json::object& object, const char* key) {
  const json::value* found = object.if_contains(key);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

std::uint64_t number(const json::object& object, const char* key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr) return 0;
  boost::system::error_code error;
  const auto value = found->to_number<std::uint64_t>(error);
  return error ? 0 : value;
}

bool flag(const json::object& object, const char* key) {
  const json::value* found = object.if_contains(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

json::object to_json(const Target& target) {
  return {{"kind", target.kind},          {"where", target.where},
          {"resource", target.resource},  {"scratch", target.scratch},
          {"guarded", target.guarded},    {"watched", target.watched},
          {"statement", target.statement}};
}

Target target_from(const json::object& object) {
  return {text(object, "kind"),     text(object, "where"),   text(object, "resource"),
          flag(object, "scratch"),  flag(object, "guarded"), flag(object, "watched"),
          text(object, "statement")};
}

json::object to_json(const TriedWay& tried) {
  return {{"way", to_text(tried.way)},
          {"words", tried.words},
          {"fate", to_text(tried.fate)},
          {"detail", tried.detail}};
}

TriedWay tried_way_from(const json::object& object) {
  TriedWay tried{.words = text(object, "words"), .detail = text(object, "detail")};
  for (const Way way : {Way::kCall, Way::kCarried, Way::kNone}) {
    if (to_text(way) == text(object, "way")) tried.way = way;
  }
  for (const WayFate fate : {WayFate::kRefused, WayFate::kLanded, WayFate::kNotApplicable}) {
    if (to_text(fate) == text(object, "fate")) tried.fate = fate;
  }
  return tried;
}

json::object to_json(const TlsOptions& tls) {
  return {{"ca", tls.ca_file},
          {"cert", tls.cert_file},
          {"key", tls.key_file},
          {"server_name", tls.server_name}};
}

TlsOptions tls_from(const json::object& object) {
  return {text(object, "ca"), text(object, "cert"), text(object, "key"),
          text(object, "server_name")};
}

}  // namespace pawl::drill
