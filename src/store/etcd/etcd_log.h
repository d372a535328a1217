// The shared log of a cluster of pawld, in etcd: the head and each entry are keys, and every write
// is one transaction that compares the head (rule 12). No clock and no socket: it is over an
// etcd::Client, which has neither.
//
//   EtcdLog log(client, settings, clock, [&] { …let the client send… });
//   for (etcd::Event& event : client.take_events()) log.on_event(event);
//   log.on_timer();                        // reports and compaction, when they are due
//
// The client sends a write again, the same bytes, until etcd has decided; so no write ends with an
// unknown outcome here. A read is a transaction of two ranges, so that head and entries are of one
// moment; and linearizable, as all that the client reads is.
//
// The active one compacts etcd: otherwise etcd keeps all that was ever written, and is full within
// minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/boot_time.h"
#include "etcd/client.h"
#include "store/cluster/shared_log.h"
#include "store/etcd/keys.h"
#include "store/etcd/nodes.h"

namespace pawl::store::etcd_log {

struct EtcdLogSettings {
  std::string cluster = "default";
  Nodes::Self self = {};
  bool compaction = true;
  std::uint64_t quota_bytes = std::uint64_t{2} << 30;
};

class EtcdLog final : public cluster::SharedLog {
 public:
  // `flush` is called when the client has something to send.
  EtcdLog(etcd::Client& client, EtcdLogSettings settings, std::function<Instant()> clock,
          std::function<void()> flush);

  // --- For the driver ----------------------------------------------------------------------------
  void on_event(const etcd::Event& event);
  // Reports that this pawld runs, and compacts.
  void on_timer();
  [[nodiscard]] Instant next_timer() const {
    return farewell_ == Farewell::kNo ? report_at_ : Instant::max();
  }
  // Where clients reach this pawld; before the first on_timer().
  void set_address(std::string address) { nodes_.set_address(std::move(address)); }
  // "active" or "standby", for the reports.
  void set_role(std::string role);
  // Takes the report back. farewell_done() then, sooner or later.
  void say_farewell();
  [[nodiscard]] bool farewell_done() const { return farewell_ == Farewell::kDone; }
  [[nodiscard]] bool address_is_taken() const { return nodes_.address_is_taken(); }

  // --- SharedLog ---------------------------------------------------------------------------------
  void listen(Listener* listener) override { listener_ = listener; }
  void write(const Write& write) override;
  void read(const Read& read) override;
  [[nodiscard]] bool has_room() const override { return room_; }
  [[nodiscard]] std::optional<ClusterView> view() const override;
  [[nodiscard]] std::string_view kind() const override { return "etcd"; }

 private:
  struct Call {
    etcd::CallId id;
    Instant began{};
  };
  enum class Farewell : std::uint8_t { kNo, kSent, kDone };

  void on_done(const etcd::TxnDone& done);
  void on_written(const etcd::TxnDone& done);
  void on_read(const etcd::TxnDone& done);
  [[nodiscard]] bool find_room() const;
  void count_written(std::size_t bytes, std::int64_t revision);
  void compact();
  [[nodiscard]] Call call(std::string request, std::optional<Nanos> attempt_time = {});
  void fail(std::string why);

  etcd::Client& client_;
  const EtcdLogSettings settings_;
  const std::function<Instant()> clock_;
  const std::function<void()> flush_;
  const Keys keys_;
  Nodes nodes_;
  Listener* listener_ = nullptr;

  std::optional<Call> write_, read_, report_, goodbye_;
  std::size_t write_bytes_ = 0;
  int old_answers_ = 0;  // Reads in a row that were older than what was known.
  // Compaction, to the revision at the one before: a reader may lag so far behind.
  std::optional<etcd::CallId> compaction_;
  std::uint64_t written_since_ = 0;
  Instant compacted_at_{};
  std::int64_t revision_ = 0, revision_before_ = 0;
  // Reports.
  std::string role_ = "standby";
  Instant report_at_{};
  Farewell farewell_ = Farewell::kNo;
  bool room_ = true;
  Instant room_at_{};
  // For people.
  std::uint64_t round_trips_ = 0, sends_ = 0, troubles_ = 0;
  Nanos round_trip_time_{0};
};

// A problem with etcd as its client names it, and what to do about it in the configuration of pawld,
// if that is known.
[[nodiscard]] std::string explained(std::string problem);

// What is wrong with this version of etcd, for the status; empty: nothing that is known.
[[nodiscard]] std::string version_problem(std::string_view version);

}  // namespace pawl::store::etcd_log
