#include "http/web_rules.h"

#include <arpa/inet.h>

#include <algorithm>

namespace pawl::http {
namespace {

Problem forbidden(std::string code, std::string title, std::string detail) {
  return {403, std::move(code), std::move(title), std::move(detail)};
}

bool is_known(std::string_view host, const std::vector<std::string>& hosts) {
  return is_loopback_name(host) ||
         std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& h) { return same_word(h, host); });
}

// Scheme, name and port: the page came from here.
bool is_same(std::string_view origin, std::string_view host) {
  if (host.empty()) return false;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && same_word(origin.substr(scheme.size()), host)) return true;
  }
  return false;
}

bool from_another_site(const Request& request) {
  const auto site = request.header("Sec-Fetch-Site");
  if (!site || *site == "same-origin" || *site == "none") return false;
  return request.method != "GET" || request.header("Sec-Fetch-Mode") != "navigate";
}

}  // namespace

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_loopback_name(std::string_view host) {
  if (same_word(host, "localhost") || host == "[::1]") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         (ntohl(address.s_addr) >> 24) == 127;
}

std::optional<Problem> refuse_host(const Request& request, const std::vector<std::string>& hosts) {
  const auto host = request.header("Host");
  if (!host || !is_known(without_port(*host), hosts)) {
    return forbidden("foreign_host", "not a name of this service",
                     "Host must be a loopback name or one of http.hosts in the configuration; this "
                     "keeps web pages out");
  }
  return std::nullopt;
}

std::optional<Problem> refuse_origin(const Request& request) {
  const bool foreign =
      request.count("Origin") > 0 &&
      !is_same(request.header("Origin").value_or(""), request.header("Host").value_or(""));
  if (foreign || from_another_site(request)) {
    return forbidden("foreign_origin", "a web page of another site",
                     "a page that did not come from this service may not use it");
  }
  return std::nullopt;
}

std::optional<Problem> refuse_media_type(const Request& request) {
  if (request.body.empty()) return std::nullopt;
  const std::string_view type = request.header("Content-Type").value_or("");
  std::string_view name = type.substr(0, type.find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (same_word(name, "application/json")) return std::nullopt;
  return Problem{415, "media_type", "not JSON", "a body needs Content-Type: application/json"};
}

}  // namespace pawl::http
