// Which pawld run in a cluster, for people: each puts its address, role and pid into etcd now and
// then, and reads what the others have put. Nothing is decided by it.
//
//   Nodes nodes(keys, {.address = "db1:7295", .pid = 4711});
//   call = client.transact(nodes.report("active"));       // every kReportEvery
//   nodes.take(answer.responses, now);                    // its answer
//   nodes.list(now)
//
// Value: u64 id, random for each process; u64 count, one more with each report; u64 pid; text role.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/boot_time.h"
#include "base/types.h"
#include "etcd/messages.h"
#include "store/etcd/keys.h"
#include "store/store.h"

namespace pawl::store::etcd_log {

class Nodes {
 public:
  struct Self {
    std::string address;
    std::uint64_t id = 0;
    std::uint64_t pid = 0;
  };
  static constexpr std::int64_t kListedMax = 64;
  static constexpr Nanos kReportEvery = std::chrono::seconds(2);
  // One that has not reported for so long is not listed as running.
  static constexpr Nanos kSilentAfter = 4 * kReportEvery;

  Nodes(const Keys& keys, Self self) : keys_(keys), self_(std::move(self)) {}

  void set_address(std::string address) { self_.address = std::move(address); }
  [[nodiscard]] const std::string& address() const { return self_.address; }
  // The transaction that reports, and reads all reports.
  [[nodiscard]] std::string report(std::string_view role);
  // The transaction that takes the own report back, at the end.
  [[nodiscard]] std::string farewell() const;
  void take(const std::vector<etcd::ResponseOp>& responses, Instant now);
  // By address. A report that has not changed for long is old: its process may be gone.
  [[nodiscard]] std::vector<ClusterView::Node> list(Instant now) const;
  // Another process reports with the address of this one.
  [[nodiscard]] bool address_is_taken() const { return taken_; }

 private:
  struct Known {
    std::string value;
    Instant changed{};
  };
  const Keys& keys_;
  Self self_;
  std::uint64_t count_ = 0;
  std::map<std::string, Known> known_;  // by address
  bool taken_ = false;
};

}  // namespace pawl::store::etcd_log
