// Where an etcd is, as users spell it: `endpoints=db1:2379,db2:2379 user=app`, or just
// `db1:2379,db2:2379`, or `https://db1:2379`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::guard {

struct EtcdDsn {
  std::string endpoints = "127.0.0.1:2379";
  std::string user = {};
  std::string password_file = {};  // else the environment variable ETCDCTL_PASSWORD
  bool tls = false;                // also by https:// and by any of the three files
  std::string tls_ca = {};
  std::string tls_cert = {};
  std::string tls_key = {};
};

// A password is refused: it would show in the list of processes. An error names the key and never
// repeats a value.
[[nodiscard]] Result<EtcdDsn> parse_etcd_dsn(std::string_view text);

}  // namespace pawl::guard
