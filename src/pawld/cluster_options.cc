#include "pawld/cluster_options.h"

#include <fmt/format.h>

#include <fstream>

#include "base/limits.h"
#include "etcd/driver.h"
#include "server/listener.h"
#include "store/etcd/keys.h"

namespace pawl::pawld {
namespace {

Error invalid(std::string what) {
  return Error{Code::kInvalid, std::move(what)};
}

bool is_wildcard(const server::ListenAddress& address) {
  return address.host == "0.0.0.0" || address.host == "::" || address.host == "*" ||
         address.host.empty();
}

Result<void> check_advertised(const ClusterOptions& options, const std::string& resp) {
  const bool given = !options.advertise.empty();
  const auto address = server::parse_listen_address(given ? options.advertise : resp);
  if (!address) return address.error();
  if (is_wildcard(*address)) {
    return invalid(fmt::format(
        "{} says to no client where this pawld is: pass the name and port under which clients "
        "reach it with --advertise HOST:PORT",
        given ? options.advertise : resp));
  }
  if (options.advertise.size() > limits::kEtcdAddressMax)
    return invalid(fmt::format("--advertise: at most {} bytes", limits::kEtcdAddressMax));
  if (given && address->port == "0") return invalid("--advertise: the port must not be 0");
  return {};
}

}  // namespace

Result<std::string> read_password(const ClusterOptions& options) {
  if (options.user.empty()) return std::string();
  std::ifstream file(options.password_file);
  std::string password;
  if (!file || !std::getline(file, password) || password.empty()) {
    return invalid(fmt::format(
        "etcd.password_file: cannot read a password for {} from the first line of \"{}\"",
        options.user, options.password_file));
  }
  return password;
}

Result<void> check_cluster(const ClusterOptions& options, const std::string& resp) {
  if (options.endpoints.empty())
    return invalid("--store etcd needs --etcd HOST:2379,…: the addresses of etcd");
  if (const auto endpoints = etcd::parse_endpoints(options.endpoints); !endpoints)
    return invalid("--etcd: " + endpoints.error().detail);
  if (!store::etcd_log::is_cluster_name(options.cluster)) {
    return invalid(fmt::format("--cluster {}: expected 1 to 64 letters, digits, '.', '_' or '-'",
                               options.cluster));
  }
  if (!options.password_file.empty() && options.user.empty())
    return invalid("etcd.password_file needs etcd.user");
  if (auto advertised = check_advertised(options, resp); !advertised) return advertised;
  if (const auto password = read_password(options); !password) return password.error();
  if (!options.tls) {
    const auto& files = options.files;
    if (!files.ca.empty() || !files.cert.empty() || !files.key.empty())
      return invalid("etcd.tls_ca, etcd.tls_cert and etcd.tls_key need etcd.tls = true");
    return {};
  }
  const auto context = tls::ClientContext::load(options.files);
  return context ? Result<void>() : context.error();
}

}  // namespace pawl::pawld
