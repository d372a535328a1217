#include "guard/etcd/dsn.h"

#include "guard/dsn_pairs.h"

namespace pawl::guard {
namespace {

constexpr DsnText<EtcdDsn> kTexts[] = {{"user", &EtcdDsn::user},
                                       {"password_file", &EtcdDsn::password_file},
                                       {"tls_ca", &EtcdDsn::tls_ca},
                                       {"tls_cert", &EtcdDsn::tls_cert},
                                       {"tls_key", &EtcdDsn::tls_key}};

Error password_in_dsn() {
  return {Code::kInvalid,
          "a password belongs into a password_file or the variable ETCDCTL_PASSWORD, not into the "
          "DSN"};
}

// db1:2379,http://db2:2379: each may have a scheme.
Result<void> set_endpoints(EtcdDsn& dsn, std::string_view list) {
  dsn.endpoints.clear();
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (!one.starts_with(scheme)) continue;
      one.remove_prefix(scheme.size());
      dsn.tls = dsn.tls || scheme == "https://";
    }
    if (one.ends_with('/')) one.remove_suffix(1);
    if (one.find('@') != one.npos) return password_in_dsn();
    dsn.endpoints += (dsn.endpoints.empty() ? "" : ",") + std::string(one);
    if (comma == list.npos) return {};
    list.remove_prefix(comma + 1);
  }
}

Result<void> set(EtcdDsn& dsn, std::string_view key, std::string_view value) {
  if (set_dsn_text(dsn, kTexts, key, value)) {
    dsn.tls = dsn.tls || key.starts_with("tls_");
    return {};
  }
  if (key == "endpoints") return set_endpoints(dsn, value);
  if (key == "password") return password_in_dsn();
  if (key == "tls" && (value == "on" || value == "off")) {
    dsn.tls = value == "on";
    return {};
  }
  return Error{Code::kInvalid,
               "a DSN for etcd has endpoints, user, password_file, tls (on or off), tls_ca, "
               "tls_cert and tls_key, such as endpoints=127.0.0.1:2379"};
}

}  // namespace

Result<EtcdDsn> parse_etcd_dsn(std::string_view text) {
  EtcdDsn dsn;
  const bool pairs = text.empty() || text.find('=') != text.npos;
  const auto done =
      pairs ? read_dsn_pairs(text, [&](std::string_view key,
                                       std::string_view value) { return set(dsn, key, value); })
            : set_endpoints(dsn, text);
  if (!done) return done.error();
  return dsn;
}

}  // namespace pawl::guard
