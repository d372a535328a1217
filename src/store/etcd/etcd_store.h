// The store of a pawld whose cluster is in etcd: etcd's sockets, the shared log over them, and the
// cluster store over that; and one descriptor for the loop, which is readable whenever there is
// something to do.
//
//   auto opened = EtcdStore::open(settings, random, log);
//   engine uses (*opened)->store(), and stands by
//   loop watches (*opened)->fd(), and calls (*opened)->run()
//   (*opened)->leave(), and the engine hands over … until (*opened)->has_left()
//
// One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/random.h"
#include "base/rate_limited_log.h"
#include "base/readable.h"
#include "base/unique_fd.h"
#include "etcd/driver.h"
#include "pawl/result.h"
#include "store/cluster/cluster_store.h"
#include "store/etcd/etcd_log.h"

namespace pawl::store::etcd_log {

struct EtcdStoreSettings {
  std::string endpoints;  // "db1:2379,db2:2379"
  std::string cluster = "default";
  std::string address;  // Where clients reach this pawld.
  Nanos role_ttl = std::chrono::seconds(5);
  std::string user = {}, password = {};
  std::shared_ptr<const tls::ClientContext> tls = {};  // nullptr: plain TCP.
  bool compaction = true;
  std::uint64_t quota_bytes = std::uint64_t{2} << 30;
};

class EtcdStore final : public Readable {
 public:
  // Looks the endpoints up, which may block; it does not wait until etcd answers.
  [[nodiscard]] static Result<std::unique_ptr<EtcdStore>> open(const EtcdStoreSettings& settings,
                                                               Random& random, Log& log);

  [[nodiscard]] cluster::ClusterStore& store() { return store_; }
  // If it is known only after the port is bound; before the first run().
  // `http_port`: on the same host; empty where others cannot reach it.
  void set_address(const std::string& address, std::string_view http_port);

  // --- Readable ----------------------------------------------------------------------------------
  [[nodiscard]] int fd() const override { return epoll_.get(); }
  void run() override;

  // Takes the role no more, and leaves the list of nodes once it has handed it over; has_left()
  // then, if etcd answers.
  void leave();
  [[nodiscard]] bool has_left() const;

 private:
  EtcdStore(const EtcdStoreSettings& settings, std::unique_ptr<etcd::Driver> driver, Random& random,
            Log& log);
  // Lets the client send, and watches for what it waits for.
  void flush();
  void rearm();

  std::unique_ptr<etcd::Driver> driver_;
  RateLimitedLog trouble_log_;
  EtcdLog log_;
  cluster::ClusterStore store_;
  UniqueFd epoll_, timer_;
  bool leaving_ = false;
  bool warned_of_address_ = false;
};

}  // namespace pawl::store::etcd_log
