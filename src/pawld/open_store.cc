#include "pawld/open_store.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "store/memory_store.h"

namespace pawl::pawld {

Result<store::etcd_log::EtcdStoreSettings> etcd_settings(const Config& config) {
  const ClusterOptions& options = config.etcd;
  store::etcd_log::EtcdStoreSettings settings;
  settings.endpoints = options.endpoints;
  settings.cluster = options.cluster;
  settings.address = options.advertise;
  settings.role_ttl = options.role_ttl;
  settings.user = options.user;
  settings.compaction = options.compaction;
  settings.quota_bytes = options.quota_bytes;
  auto password = read_password(options);
  if (!password) return password.error();
  settings.password = std::move(*password);
  if (!options.tls) return settings;
  auto context = tls::ClientContext::load(options.files);
  if (!context) return context.error();
  settings.tls = std::move(*context);
  return settings;
}

Result<void> OpenStore::open(const Config& config, Random& random, Log& log) {
  PAWL_ASSERT(store_ == nullptr && etcd_ == nullptr);
  if (config.store == StoreKind::kEtcd) {
    const auto settings = etcd_settings(config);
    if (!settings) return settings.error();
    auto opened = store::etcd_log::EtcdStore::open(*settings, random, log);
    if (!opened) return opened.error();
    etcd_ = std::move(*opened);
    return {};
  }
  if (config.store == StoreKind::kMemory) {
    store_ = std::make_unique<store::MemoryStore>(Incarnation{random.next()});
    return {};
  }
  auto opened = store::journal::Journal::open(files_, config.data, config.journal, random);
  if (!opened) return opened.error();
  journal_ = opened->get();
  store_ = std::move(*opened);
  return {};
}

store::Store& OpenStore::store() {
  PAWL_ASSERT(store_ != nullptr || etcd_ != nullptr);
  return etcd_ ? etcd_->store() : *store_;
}

Result<MachineCheck> OpenStore::check_machine(const std::string& id_path, Adopt adopt,
                                              Random& random) {
  if (journal_ == nullptr) return MachineCheck::kSameMachine;
  return pawld::check_machine(*journal_, id_path, adopt, random);
}

void OpenStore::start_threads() {
  PAWL_ASSERT(maintenance_ == nullptr);
  if (journal_ == nullptr) return;
  maintenance_ = std::make_unique<store::journal::MaintenanceThread>(*journal_);
  backups_ = std::make_unique<store::journal::BackupThreads>(*journal_);
}

Result<void> OpenStore::close() {
  if (backups_) backup_hangs_ = !backups_->stop();
  backups_.reset();
  maintenance_.reset();
  return store().close();
}

std::string with_advice(const Error& error, const Config& config) {
  if (config.store == StoreKind::kEtcd)
    return fmt::format("{}. Check --etcd and the table [etcd] of the configuration", error.detail);
  if (error.code == Code::kBusy) {
    return fmt::format(
        "{}. Another pawld serves this data; stop it, or choose another directory with --data",
        error.detail);
  }
  if (error.code == Code::kInvalid && config.journal.must_exist &&
      error.detail.find("a store must exist there") != std::string::npos) {
    return fmt::format(
        "{}. Mount the volume or correct --data; to create an empty store: pawld init --data {}",
        error.detail, config.data);
  }
  if (error.code == Code::kInvalid) {
    return fmt::format("{}. Nothing was changed; look at it with: pawld dump --data {}",
                       error.detail, config.data);
  }
  if (error.code == Code::kDenied) {
    return fmt::format("{}. Choose a directory that pawld may create or write with --data",
                       error.detail);
  }
  if (error.code == Code::kUnavailable) {
    return fmt::format("{}. Free some space and start again", error.detail);
  }
  return fmt::format("{}. Check the disk and the permissions of {}", error.detail, config.data);
}

}  // namespace pawl::pawld
