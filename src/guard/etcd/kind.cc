#include "guard/etcd/kind.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "guard/etcd/names.h"

namespace pawl::guard {
namespace {

constexpr Abilities kEtcdAbilities{
    Ability::kConcurrency,  Ability::kOperationLast, Ability::kTextTokens, Ability::kTokenless,
    Ability::kUnguarded,    Ability::kModes,         Ability::kCanary,     Ability::kEmergency,
    Ability::kRequireToken, Ability::kMaxStep,       Ability::kEqualOnce,  Ability::kEqualRefuse,
    Ability::kCounts,       Ability::kRemove,        Ability::kCompact,    Ability::kElsewhere,
    Ability::kRehearsal,    Ability::kSeveral};

// People and scripts would rather wait for a busy etcd than start again.
constexpr std::chrono::seconds kToolPatience{30};

bool etcd_seems_local() {
  std::error_code ignored;
  return std::filesystem::exists("/run/systemd/units/invocation:etcd.service", ignored);
}

}  // namespace

const Kind kEtcdKind{
    .name = "etcd",
    .title = "etcd",
    .location = Location::kDsn,
    .where_example = "'endpoints=127.0.0.1:2379'",
    .abilities = kEtcdAbilities,
    .forms = kEtcdForms,
    .scratch_form = "static",
    .open_administration = open_etcd_administration,
    .open_session = open_etcd_session,
    .open_scratch = open_etcd_scratch,
    .seems_local = etcd_seems_local,
};

Result<EtcdScope> parse_etcd_form(std::string_view text) {
  for (std::size_t i = 0; i < kEtcdForms.size(); ++i) {
    if (kEtcdForms[i] == text) return static_cast<EtcdScope>(i);
  }
  return Error{Code::kInvalid, fmt::format("unknown form \"{}\" of a guard in etcd", text)};
}

Result<EtcdOptions> to_etcd_options(const std::string& dsn) {
  const auto where = parse_etcd_dsn(dsn);
  if (!where) return where.error();
  EtcdOptions options{.endpoints = where->endpoints,
                      .user = where->user,
                      .tls = where->tls,
                      .tls_ca = where->tls_ca,
                      .tls_cert = where->tls_cert,
                      .tls_key = where->tls_key,
                      .time_limit = kToolPatience};
  if (where->user.empty()) return options;
  if (where->password_file.empty()) {
    const char* password = std::getenv("ETCDCTL_PASSWORD");
    options.password = password == nullptr ? "" : password;
    return options;
  }
  std::ifstream file(where->password_file);
  if (!std::getline(file, options.password))
    return Error{Code::kInvalid,
                 fmt::format("no password can be read from {}", where->password_file)};
  return options;
}

Result<std::shared_ptr<EtcdConnection>> connect_etcd(const std::string& dsn) {
  const auto options = to_etcd_options(dsn);
  if (!options) return options.error();
  auto connection = EtcdConnection::open(*options);
  if (!connection) return connection.error();
  if (const auto found = (*connection)->range(std::string(kEtcdMark), "");
      !found && found.error().code != Code::kDenied)
    return found.error();
  return std::shared_ptr<EtcdConnection>(*std::move(connection));
}

}  // namespace pawl::guard
