#include "client/address.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace pawl::client {
namespace {

Error malformed(std::string_view text, std::string_view why) {
  return {Code::kInvalid, "address \"" + std::string(text) + "\": " + std::string(why)};
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (status != std::errc{} || end != digits.data() + digits.size() || port == 0)
    return std::nullopt;
  return port;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// `rest` follows the host: nothing, or ":port".
Result<Address> with_port(std::string_view text, std::string_view host, std::string_view rest) {
  if (host.empty()) return malformed(text, "the host is missing; write host:port");
  if (rest.empty()) return Address{std::string(host), kDefaultPort};
  const auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
  if (!port) return malformed(text, "expected a port from 1 to 65535 after the colon");
  return Address{std::string(host), *port};
}

constexpr std::string_view kTls = "tls://";

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kTls)) {
    auto address = parse_address(text.substr(kTls.size()));
    if (address && address->tls) return malformed(text, "expected a host after tls://");
    if (address) address->tls = true;
    return address;
  }
  if (text.find("://") != std::string_view::npos)
    return malformed(text, "expected host:port or tls://host:port");
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return malformed(text, "the closing bracket is missing");
    return with_port(text, text.substr(1, close - 1), text.substr(close + 1));
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return with_port(text, text, {});
  if (text.find(':', colon + 1) != std::string_view::npos) {
    return malformed(text, "write an IPv6 address in brackets, like [::1]:7295");
  }
  return with_port(text, text.substr(0, colon), text.substr(colon));
}

}  // namespace

Result<std::vector<Address>> parse_addresses(std::string_view list) {
  std::vector<Address> addresses;
  for (std::string_view rest = list;;) {
    const auto comma = rest.find(',');
    auto address = parse_address(trimmed(rest.substr(0, comma)));
    if (!address) return address.error();
    addresses.push_back(std::move(*address));
    if (addresses.back().tls != addresses.front().tls)
      return malformed(list, "write tls:// before all addresses or before none");
    if (comma == std::string_view::npos) return addresses;
    rest.remove_prefix(comma + 1);
  }
}

Result<void> use_tls(std::vector<Address>& addresses, const tls::ClientFiles& files) {
  if (std::none_of(addresses.begin(), addresses.end(), [](const Address& one) { return one.tls; }))
    return {};
  auto context = tls::ClientContext::load(files);
  if (!context) return context.error();
  for (Address& address : addresses) address.context = *context;
  return {};
}

std::string to_text(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  const std::string_view scheme = address.tls ? kTls : std::string_view();
  return std::string(scheme) + (ipv6 ? "[" + address.host + "]" : address.host) + ":" +
         std::to_string(address.port);
}

}  // namespace pawl::client
