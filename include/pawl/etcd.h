// Writes to etcd that a newer holder's token fences out. Prepare it first:
// `pawl guard install etcd` and `pawl guard protect etcd 'orders/*'`.
//
//   pawl::EtcdGuard guard({.endpoints = "db1:2379,db2:2379,db3:2379"});
//   auto done = guard.write(lease, "orders", {pawl::EtcdPut{"orders/7", "shipped"}});
//   if (!done) return report(done.error());                // kStaleToken is final
//
// The check and the changes are one transaction of etcd. A change that is sent around it is not
// checked: `pawl guard protect etcd` prints the commands that keep other users from doing so.
//
// Link Pawl::etcd. Other languages send the same transaction (docs/how-to/guard-etcd.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

namespace pawl {

struct EtcdOptions {
  std::string endpoints = "127.0.0.1:2379";  // HOST:PORT, separated by commas
  std::string user = {};                     // empty: none, or the one of the certificate
  std::string password = {};
  bool tls = false;
  std::string tls_ca = {};  // PEM files; without a CA: those of the system
  std::string tls_cert = {};
  std::string tls_key = {};
  // Of one call to etcd. A write that has to find out what became of its call ends after three
  // times as long at the latest.
  std::chrono::milliseconds time_limit{10'000};
};

struct EtcdPut {
  std::string key;
  std::string value;
};
struct EtcdDelete {
  std::string key;
  bool prefix = false;  // all keys that begin with it
};
using EtcdChange = std::variant<EtcdPut, EtcdDelete>;

// A condition of yours: the key was last changed by this revision; 0: there is no such key.
struct EtcdCondition {
  std::string key;
  std::int64_t mod_revision = 0;
};

struct EtcdWrite {
  Decision decision;
  // False: a condition of yours was not met, and nothing was changed, although the token is good.
  bool met = true;
};

struct EtcdWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it, and an unknown outcome can be settled. Numbers grow: a smaller one than the
  // last is stale. 0: none.
  std::uint64_t operation = 0;
  std::vector<EtcdCondition> conditions = {};
};

// Has a connection of its own to each endpoint, opened by the first call. Used by one thread at a
// time. As with every connection, the program ignores SIGPIPE.
class PAWL_PUBLIC EtcdGuard final : public Guard {
 public:
  explicit EtcdGuard(EtcdOptions options);
  ~EtcdGuard() override;
  EtcdGuard(const EtcdGuard&) = delete;
  EtcdGuard& operator=(const EtcdGuard&) = delete;

  [[nodiscard]] std::string name() const override;
  // Asks etcd for its version and its alarms, and whether it has users.
  [[nodiscard]] GuardStrength strength() override;
  // Never waits: etcd applies one transaction at a time.
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Checks the lease's token and makes the changes, in one transaction. The changes may touch keys
  // of this resource only. The value says that they are in effect (but see EtcdWrite::met):
  // admitted now, replayed (done before), or let through by a mode that does not refuse.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the call. Nothing happened.
  //   kUnknown       etcd did not answer, and it may have happened: there is no operation number
  //                  to ask with, or etcd stays silent.
  //   kUnavailable   etcd cannot be reached. Nothing happened.
  //   kDenied        this user may not. Nothing happened.
  //   kInvalid       the guard or the changes are wrong, or more than etcd takes in one
  //                  transaction (128 operations, 1.5 MiB): the detail says what.
  [[nodiscard]] Result<EtcdWrite> write(const Lease& lease, std::string_view resource,
                                        std::vector<EtcdChange> changes,
                                        EtcdWriteOptions options = {});
  // The same for a program that has only a token, such as a command under `pawl run`: no lease is
  // checked then.
  [[nodiscard]] Result<EtcdWrite> write(std::uint64_t token, std::string_view resource,
                                        std::vector<EtcdChange> changes,
                                        EtcdWriteOptions options = {});
  // The same for changes that touch several resources, of one guard or more. The token must be good
  // for each of them.
  [[nodiscard]] Result<EtcdWrite> write_all(const Lease& lease, std::vector<std::string> resources,
                                            std::vector<EtcdChange> changes,
                                            EtcdWriteOptions options = {});
  [[nodiscard]] Result<EtcdWrite> write_all(std::uint64_t token, std::vector<std::string> resources,
                                            std::vector<EtcdChange> changes,
                                            EtcdWriteOptions options = {});

 private:
  struct Connected;
  [[nodiscard]] Result<Connected*> connect();

  const EtcdOptions options_;
  std::unique_ptr<Connected> connected_;
};

}  // namespace pawl
