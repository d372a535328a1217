// One shared log in etcd, for the commands that do not serve: it is read whole, and may be created.
//
//   auto access = EtcdAccess::open(config);
//   (*access)->read();            // head(), index() and records then, as they were at one moment
//
// Each call waits for etcd, but not for ever.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "etcd/driver.h"
#include "pawld/options.h"
#include "store/cluster/log_copy.h"
#include "store/etcd/etcd_log.h"

namespace pawl::pawld {

class EtcdAccess final : private store::cluster::SharedLog::Listener {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EtcdAccess>> open(const Config& config);

  // Reads head and records. kInvalid: the log is damaged.
  [[nodiscard]] Result<void> read();
  // After read(). Nothing: there is no store of this cluster.
  [[nodiscard]] const store::cluster::Head* head() const { return head_ ? &*head_ : nullptr; }
  // While there is a head.
  [[nodiscard]] const store::cluster::LogIndex& index() const { return copy_->index(); }
  // Once after each read().
  [[nodiscard]] store::cluster::LogRecords::Map take_records() { return records_.take(); }
  // Whether keys of the cluster's log are there, with a head or without.
  [[nodiscard]] bool has_entries() const { return has_entries_; }
  [[nodiscard]] const std::string& cluster() const { return cluster_; }

  // Writes the first head and entry, if there is no head. kInvalid: there is one.
  [[nodiscard]] Result<void> create(const store::cluster::SharedLog::Write& write);

 private:
  EtcdAccess(std::unique_ptr<etcd::Driver> driver, std::string cluster);
  void written(const store::cluster::SharedLog::WriteAnswer& answer) override { wrote_ = answer; }
  void read(const store::cluster::SharedLog::ReadAnswer& answer) override { answer_ = answer; }
  void failed(const Error& error) override { failure_ = error; }

  [[nodiscard]] Result<void> take(const store::cluster::SharedLog::ReadAnswer& answer);
  // Until there is an answer.
  [[nodiscard]] Result<void> wait();
  [[nodiscard]] std::string why() const;

  std::unique_ptr<etcd::Driver> driver_;
  const std::string cluster_;
  store::etcd_log::EtcdLog log_;
  std::optional<store::cluster::SharedLog::ReadAnswer> answer_;
  std::optional<store::cluster::SharedLog::WriteAnswer> wrote_;
  std::optional<Error> failure_;
  std::optional<store::cluster::Head> head_;
  std::optional<store::cluster::LogCopy> copy_;
  store::cluster::LogRecords records_;
  bool has_entries_ = false;
};

}  // namespace pawl::pawld
