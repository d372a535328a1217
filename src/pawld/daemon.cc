#include "pawld/daemon.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "auth/users_disk.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/version.h"
#include "core/records.h"
#include "pawld/exit_codes.h"
#include "pawld/machine.h"
#include "pawld/notify.h"
#include "pawld/web.h"
#include "server/engine.h"
#include "server/listener.h"
#include "server/loop.h"
#include "store/journal/backup_thread.h"
#include "store/journal/dump.h"
#include "store/journal/journal.h"
#include "store/journal/journal_thread.h"
#include "store/memory_store.h"
#include "store/posix_files.h"
#include "tls/context.h"

namespace pawl::pawld {
namespace {

std::string with_advice(const Error& error, const Config& config) {
  if (error.code == Code::kBusy) {
    return fmt::format("{}. Another pawld serves this data; stop it, or choose another directory with --data",
                       error.detail);
  }
  if (error.code == Code::kInvalid) {
    return fmt::format("{}. Nothing was changed; look at it with: pawld dump --data {}", error.detail,
                       config.data);
  }
  if (error.code == Code::kDenied) {
    return fmt::format("{}. Choose a directory that pawld may create or write with --data", error.detail);
  }
  if (error.code == Code::kUnavailable) {
    return fmt::format("{}. Free some space and start again", error.detail);
  }
  return fmt::format("{}. Check the disk and the permissions of {}", error.detail, config.data);
}

// Each connection is a descriptor; take what the system allows without asking for more.
void raise_descriptor_limit(Log& log) {
  constexpr rlim_t kNeeded =
      limits::kConnectionsMax + limits::kConnectionsReserved + limits::kHttpConnectionsMax + 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur < kNeeded) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kNeeded);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < kNeeded) {
    log.warning(
        fmt::format("only {} file descriptors are allowed, {} are needed for {} connections (ulimit -n)",
                    limit.rlim_cur, kNeeded, limits::kConnectionsMax));
  }
}

// The store of one run. The helper threads must end before the journal closes.
struct OpenStore {
  store::PosixFiles files;
  std::unique_ptr<store::journal::Journal> journal;
  std::unique_ptr<store::MemoryStore> memory;
  std::unique_ptr<store::journal::JournalThread> helper;
  std::unique_ptr<store::journal::BackupThread> backups;

  store::Store& get() { return journal ? static_cast<store::Store&>(*journal) : *memory; }

  Result<void> open(const Config& config, Random& random) {
    if (config.store == StoreKind::kMemory) {
      memory = std::make_unique<store::MemoryStore>(Incarnation{random.next()});
      return {};
    }
    auto opened = store::journal::Journal::open(files, config.data, config.journal, random);
    if (!opened) return opened.error();
    journal = std::move(*opened);
    return {};
  }
  void start_helper() {
    if (!journal) return;
    helper = std::make_unique<store::journal::JournalThread>(*journal);
    backups = std::make_unique<store::journal::BackupThread>(*journal);
  }
  Result<void> close() {
    backups.reset();
    helper.reset();
    return get().close();
  }
};

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

bool write_port_file(const std::string& path, const std::vector<std::string>& addresses) {
  if (path.empty()) return true;
  const std::string partial = path + ".partial";  // Whoever waits for the file must not read half a number.
  {
    std::ofstream out(partial, std::ios::trunc);
    for (const std::string& address : addresses) out << port_of(address) << '\n';
    if (!out.flush()) return false;
  }
  return std::rename(partial.c_str(), path.c_str()) == 0;
}

void greet(const Config& config, const std::string& address, const store::Loaded& loaded,
           const core::Totals& totals) {
  const std::string where = config.store == StoreKind::kMemory ? "in memory: nothing survives" : config.data;
  fmt::print("pawld {} serves {} ({}{}; {} leases, last token {})\n", kVersion, address, where,
             loaded.fresh ? ", new" : "", totals.leases, totals.last_token.value);
  if (!config.auth_file.empty()) {
    fmt::print("try: PAWL_AUTH=USER:SECRET pawl --addr {} status\n", address);
    std::fflush(stdout);
    return;
  }
  const std::size_t colon = address.rfind(':');
  const std::string host =
      address.substr(0, colon) == "127.0.0.1" ? "" : fmt::format(" -h {}", address.substr(0, colon));
  const char* tls = config.tls.named() ? " --tls --cacert …" : "";
  fmt::print("try: redis-cli{}{} -p {} ACQUIRE hello TTL 15000\n", tls, host, address.substr(colon + 1));
  std::fflush(stdout);
}

class Daemon {
 public:
  explicit Daemon(const Options& options)
      : options_(options), config_(options.config), log_(open_log(config_.log_format)), loop_(*log_) {}

  int run() {
    raise_descriptor_limit(*log_);
    if (config_.store == StoreKind::kMemory)
      log_->warning("--store memory: for tests; no grant survives this process");
    store_.files.on_buffered([this](const std::string& path) {
      log_->info(
          fmt::format("{}: the file system refuses direct writes (O_DIRECT); the journal is written through "
                      "its cache and "
                      "synced by fdatasync, which is as durable",
                      path));
    });
    if (const auto opened = store_.open(config_, random_); !opened) return refuse(opened.error());
    if (const auto settled = settle_machine(); !settled) return exit_code_of(settled.error());

    server::EngineSettings settings;
    settings.ttl_max = config_.max_ttl;
    settings.core.hash_seed = random_.next();
    server::Engine engine(settings,
                          {store_.get(), clock_, random_, loop_, *log_, [this](const Error&) { die(); }});
    if (!config_.auth_file.empty() && !read_users(engine)) return kExitConfig;
    loop_.on_reload([this, &engine] { reload(engine); });
    // Before the store is read: who asks meanwhile hears -LOADING, and a port in use is noticed at once.
    if (const auto ready = start_tls(); !ready) {
      log_->error(ready.error().detail);
      return kExitConfig;
    }
    const auto address = listen();
    if (!address) {
      log_->error(address.error().detail);
      return kExitConfig;
    }
    engine.set_address(*address);
    bool stopped = false;
    const auto loaded = engine.load([&] { return !(stopped = !loop_.poll(engine)); });
    if (stopped) return stop();
    if (!loaded) return refuse(loaded.error());
    // What reading the store took is a third of what stays; give it back rather than keep it for ever.
    ::malloc_trim(0);
    store_.start_helper();
    if (!loaded->clean && !loaded->fresh)
      log_->info("the last run did not stop cleanly; its acknowledged state was recovered");
    if (const Millis wait = engine.core().restoring_for(engine.now()); wait > Millis(0))
      log_->warning(
          fmt::format("restored from a backup: nothing is granted for {} ms; waiters queue", wait.count()));
    greet(config_, *address, *loaded, engine.totals());
    if (web_) web_->greet();
    notify("READY=1");
    loop_.run(engine);
    return stop();
  }

 private:
  // HTTP first: whoever sees RESP answer finds HTTP there too.
  Result<std::string> listen() {
    if (const auto opened = loop_.open(); !opened) return opened.error();
    std::optional<std::string> web;
    if (config_.http != kHttpOff) {
      web_.emplace(*log_, config_);
      if (tls_) web_->use_tls(tls_);
      const auto started = web_->start(loop_);
      if (!started) return started.error();
      web = *started;
    }
    const auto address = server::parse_listen_address(config_.resp);
    if (!address) return address.error();
    auto listener = server::listen_on(*address);
    if (!listener) {
      return Error{Code::kInvalid,
                   listener.error().detail + ". Choose another address with --resp, or stop what uses it"};
    }
    std::vector<std::string> addresses{listener->address};
    if (web) addresses.push_back(*web);
    if (const auto listening = loop_.listen(std::move(*listener)); !listening) return listening.error();
    if (!write_port_file(options_.port_file, addresses)) {
      return Error{Code::kInvalid, "cannot write the port to " + options_.port_file};
    }
    return addresses.front();
  }

  // Whether the data may be used on this machine. An error has been told.
  Result<void> settle_machine() {
    if (!store_.journal) return {};
    const auto settled = pawld::settle_machine(*store_.journal, options_.machine_id_file,
                                               options_.adopt ? Adopt::kYes : Adopt::kNo, random_);
    if (!settled && settled.error().code != Code::kDenied) {
      log_->error(with_advice(settled.error(), config_));
    } else if (!settled) {
      log_->error(
          fmt::format("{}: {}. If that pawld still serves, or has served since this copy was made, both "
                      "would issue the same tokens: "
                      "restore a backup instead (pawld restore). If the data was moved here for good, start "
                      "once with --adopt",
                      config_.data, settled.error().detail));
    } else if (*settled == Settled::kAdopted) {
      log_->warning(fmt::format("{}: adopted from another machine; no pawld may serve the original any more",
                                config_.data));
    }
    return settled ? Result<void>() : settled.error();
  }

  bool read_users(server::Engine& engine) {
    auto users = auth::load_users(config_.auth_file);
    if (!users) {
      log_->error(users.error().detail);
      return false;
    }
    log_->info(fmt::format("users in {}: {}", config_.auth_file, users->size()));
    engine.set_users(server::Users(std::move(*users)));
    return true;
  }

  Result<void> start_tls() {
    if (!config_.tls.named()) return {};
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) return context.error();
    log_->info(fmt::format("TLS with the certificate of {}", (*context)->summary()));
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    return {};
  }

  // SIGHUP: files that may have changed are read again. What is wrong changes nothing: a slip in a file must not lock
  // everyone out, nor let everyone in.
  void reload(server::Engine& engine) {
    if (config_.auth_file.empty() && !config_.tls.named())
      log_->info("HUP: there is no auth_file to read again, and no certificate");
    if (!config_.auth_file.empty() && !read_users(engine)) log_->error("HUP: the users stay as they were");
    if (config_.tls.named()) reload_tls();
  }

  void reload_tls() {
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) {
      return log_->error(fmt::format("the old certificate stays in use, the new one does not fit: {}",
                                     context.error().detail));
    }
    log_->info(fmt::format("new connections get the certificate of {}", (*context)->summary()));
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    if (web_) web_->use_tls(tls_);
  }

  int stop() {
    notify("STOPPING=1");
    if (web_) web_->stop();  // Before the engine goes: nobody is left to ask it.
    log_->info("stopping: every connection is closed, leases stay");
    const auto closed = store_.close();
    if (closed) return kExitOk;
    log_->error(fmt::format("the store did not close cleanly: {}", closed.error().detail));
    return kExitStore;
  }

  int refuse(const Error& error) {
    log_->error(with_advice(error, config_));
    return exit_code_of(error);
  }

  // What the disk holds is no longer known: no destructor may write to it, and nobody may be told anything.
  [[noreturn]] void die() {
    log_->error("stopping at once without answering; a restart recovers what was acknowledged");
    log_.reset();
    ::_exit(kExitStore);
  }

  const Options& options_;
  const Config& config_;
  std::unique_ptr<Log> log_;
  SystemRandom random_;
  server::SystemClock clock_;
  OpenStore store_;
  std::shared_ptr<const tls::ServerContext> tls_;  // nothing: connections are plain
  server::Loop loop_;
  std::optional<Web> web_;
};

}  // namespace

int serve(const Options& options) {
  return Daemon(options).run();
}

int init(const Options& options) {
  const std::string& data = options.config.data;
  std::error_code unreadable;
  const bool there =
      std::filesystem::exists(data, unreadable) && !std::filesystem::is_empty(data, unreadable);
  if (there && !unreadable) {
    fmt::print("{} is not empty; it stays as it is\n", data);
    return kExitOk;
  }
  SystemRandom random;
  OpenStore store;
  Config config = options.config;
  config.journal.must_exist = false;
  Result<void> done = store.open(config, random);
  if (done) {
    struct : store::Visitor {
      Result<void> record(std::string_view /*key*/, std::string_view /*value*/) override { return {}; }
    } nothing;
    const auto loaded = store.get().load(nothing);
    done = loaded ? store.close() : Result<void>(loaded.error());
  }
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", with_advice(done.error(), config));
    return exit_code_of(done.error());
  }
  fmt::print("created an empty store in {}\n", data);
  return kExitOk;
}

int dump(const Options& options) {
  store::PosixFiles files;
  const auto format = [](bool put, std::string_view key, std::string_view value) {
    if (put) return core::describe(key, value);
    if (!core::is_lease_key(key)) return std::string("a record this version does not know");
    return fmt::format("lease token {}", ByteReader(key.substr(1)).u64_ordered());
  };
  const auto dumped = store::journal::dump(files, options.config.data, format,
                                           [](std::string_view line) { fmt::print("{}\n", line); });
  if (dumped) return kExitOk;
  fmt::print(stderr, "pawld: {}. Name the directory with --data\n", dumped.error().detail);
  return kExitConfig;
}

}  // namespace pawl::pawld
