// The settings of a pawld whose store is in etcd, with others: `--store etcd`, and the table [etcd]
// of the configuration file.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::pawld {

inline constexpr Millis kRoleTtlMin{1'000};
inline constexpr Millis kRoleTtlMax{60'000};

struct ClusterOptions {
  std::string endpoints;  // "db1:2379,db2:2379"
  std::string cluster = "default";
  // Where clients and other pawld reach this one; empty: the address that it listens on.
  std::string advertise;
  // How long the active one may be silent before another one takes over.
  Millis role_ttl{5'000};
  std::string user;           // Empty: etcd has no users, or knows us by our certificate.
  std::string password_file;  // Its first line is the password.
  bool tls = false;
  tls::ClientFiles files;
  bool compaction = true;
  std::uint64_t quota_bytes = std::uint64_t{2} << 30;  // As etcd's --quota-backend-bytes.
};

// Whether they can be used; `resp` is the listen address. kInvalid says what to do.
[[nodiscard]] Result<void> check_cluster(const ClusterOptions& options, const std::string& resp);
// The password; empty if there is no user. kInvalid: the file cannot be used.
[[nodiscard]] Result<std::string> read_password(const ClusterOptions& options);

}  // namespace pawl::pawld
