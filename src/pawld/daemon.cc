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
#include "pawld/patience.h"
#include "pawld/web.h"
#include "server/engine.h"
#include "server/listener.h"
#include "server/loop.h"
#include "server/metrics.h"
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
    log.warning(fmt::format(
        "only {} file descriptors are allowed, {} are needed for {} connections (ulimit -n)",
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

// As bound. `http` is empty where it is off.
struct ListenAddresses {
  std::string resp, http;
};

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

bool write_port_file(const std::string& path, const ListenAddresses& bound) {
  if (path.empty()) return true;
  const std::string partial =
      path + ".partial";  // Whoever waits for the file must not read half a number.
  {
    std::ofstream out(partial, std::ios::trunc);
    out << port_of(bound.resp) << '\n';
    if (!bound.http.empty()) out << port_of(bound.http) << '\n';
    if (!out.flush()) return false;
  }
  return std::rename(partial.c_str(), path.c_str()) == 0;
}

// Commands to try, for a person who has started pawld by hand.
void print_hints(const Config& config, const ListenAddresses& at, const tls::ServerContext* tls) {
  const bool users = !config.auth_file.empty();
  const std::size_t colon = at.resp.rfind(':');
  const std::string bound = at.resp.substr(0, colon), port = at.resp.substr(colon + 1);
  const std::string host = tls == nullptr ? bound : tls->host_for_clients(bound);
  const std::string trust = tls == nullptr ? "" : "PAWL_TLS_CA=CA.pem ";
  if (users || tls != nullptr) {
    fmt::print("try: {}{}pawl --addr {}{}:{} status\n", trust,
               users ? "PAWL_AUTH=USER:SECRET " : "", tls == nullptr ? "" : "tls://", host, port);
  } else {
    fmt::print("try: redis-cli{} -p {} ACQUIRE hello TTL 15000\n",
               bound == "127.0.0.1" ? "" : " -h " + bound, port);
  }
  if (!at.http.empty()) {
    fmt::print("http: curl{}{} {}://{}:{}/v1/status\n", tls == nullptr ? "" : " --cacert CA.pem",
               users ? " -H 'Authorization: Bearer USER:SECRET'" : "",
               tls == nullptr ? "http" : "https",
               tls == nullptr ? at.http.substr(0, at.http.rfind(':')) : host, port_of(at.http));
  }
  std::fflush(stdout);
}

class Daemon {
 public:
  explicit Daemon(const Options& options)
      : options_(options),
        config_(options.config),
        log_(open_log(config_.log_format)),
        patience_(config_.wait, *log_),
        loop_(*log_) {}

  int run() {
    raise_descriptor_limit(*log_);
    if (config_.store == StoreKind::kMemory)
      log_->warning("--store memory: for tests; no grant survives this process");
    store_.files.on_buffered([this](const std::string& path) {
      log_->info(fmt::format(
          "{}: the file system refuses direct writes (O_DIRECT); the journal is written through "
          "its cache and "
          "synced by fdatasync, which is as durable",
          path));
    });
    if (const auto opened =
            patience_.wait_for<void>([this] { return store_.open(config_, random_); });
        !opened)
      return patience_.interrupted() ? stop_waiting() : refuse(opened.error());
    if (const auto settled = settle_machine(); !settled) return exit_code_of(settled.error());

    server::EngineSettings settings;
    settings.ttl_max = config_.max_ttl;
    settings.core.hash_seed = random_.next();
    server::Engine engine(
        settings, {store_.get(), clock_, random_, loop_, *log_, [this](const Error&) { die(); }});
    if (!config_.auth_file.empty() && !read_users(engine)) return kExitConfig;
    loop_.on_reload([this, &engine] { reload(engine); });
    // Before the store is read: who asks meanwhile hears -LOADING, and a port in use is noticed at
    // once.
    if (const auto ready = start_tls(engine); !ready) {
      log_->error(ready.error().detail);
      return kExitConfig;
    }
    const auto address = listen();
    if (!address) {
      if (patience_.interrupted()) return stop_waiting();
      log_->error(address.error().detail);
      return kExitConfig;
    }
    engine.set_address(address->resp);
    bool stopped = false;
    const auto loaded = engine.load([&] { return !(stopped = !loop_.poll(engine)); });
    if (stopped) return stop();
    if (!loaded) return refuse(loaded.error());
    // What reading the store took is a third of what stays; give it back rather than keep it for
    // ever.
    ::malloc_trim(0);
    warn_of_small_volume();  // Before the helper takes more of the free space.
    store_.start_helper();
    if (!loaded->clean && !loaded->fresh)
      log_->info(
          fmt::format("the last run did not stop cleanly; its acknowledged state was recovered. "
                      "Tokens go on after {}: "
                      "they are reserved in blocks of {}, and what was left of a block is skipped, "
                      "so the gap is not "
                      "lost grants",
                      engine.totals().last_token.value, limits::kTokenBlock));
    if (const Millis wait = engine.core().restoring_for(engine.now()); wait > Millis(0))
      log_->warning(fmt::format(
          "restored from a backup: nothing is granted for {} ms; waiters queue", wait.count()));
    log_start(*address, *loaded, engine.totals());
    notify("READY=1");
    if (config_.log_format == LogFormat::kText) {
      log_->settle();
      print_hints(config_, *address, tls_.get());
    }
    loop_.run(engine);
    return stop();
  }

 private:
  // HTTP first: whoever sees RESP answer finds HTTP there too.
  Result<ListenAddresses> listen() {
    if (const auto opened = loop_.open(); !opened) return opened.error();
    ListenAddresses bound;
    if (config_.http != kHttpOff) {
      web_.emplace(*log_, config_);
      if (tls_) web_->use_tls(tls_);
      const auto started = web_->start(loop_, patience_);
      if (!started) return started.error();
      bound.http = *started;
    }
    const auto address = server::parse_listen_address(config_.resp);
    if (!address) return address.error();
    auto listener =
        patience_.wait_for<server::Listener>([&] { return server::listen_on(*address); });
    if (!listener) {
      return Error{
          Code::kInvalid,
          listener.error().detail + ". Choose another address with --resp, or stop what uses it"};
    }
    bound.resp = listener->address;
    if (const auto listening = loop_.listen(std::move(*listener)); !listening)
      return listening.error();
    if (!write_port_file(options_.port_file, bound)) {
      return Error{Code::kInvalid, "cannot write the port to " + options_.port_file};
    }
    return bound;
  }

  void log_start(const ListenAddresses& at, const store::Loaded& loaded,
                 const core::Totals& totals) {
    const bool journal = config_.store == StoreKind::kJournal;
    log_->info(fmt::format("pawld {} serves {}{} ({}{}; {} {}, last token {})", kVersion, at.resp,
                           at.http.empty() ? "" : " and http " + at.http,
                           journal ? config_.data : "in memory: nothing survives",
                           loaded.fresh ? ", new" : "", totals.leases,
                           totals.leases == 1 ? "lease" : "leases", totals.last_token.value),
               {{"event", "serving"},
                {"version", kVersion},
                {"address", at.resp},
                {"http_address", at.http},
                {"tls", tls_ ? "yes" : "no"},
                {"data", journal ? config_.data : std::string_view()},
                {"leases", totals.leases},
                {"last_token", totals.last_token.value}});
  }

  // Free space and the store's own files together: a new store on a small volume has not taken its
  // space yet.
  void warn_of_small_volume() {
    const auto space = store_.get().space();
    if (!space) return;
    const std::uint64_t volume = space->free + server::read_process(config_.data).store_bytes;
    if (volume >= space->volume_needed) return;
    log_->warning(
        fmt::format("{}: the volume is too small: {} MiB are there for the store, {} MiB are "
                    "needed. With less, the "
                    "store's own files can fill the disk, and then no lock is granted. Use a "
                    "larger volume, or a smaller "
                    "segment_bytes for a new store",
                    config_.data, volume >> 20, (space->volume_needed + (1 << 20) - 1) >> 20));
  }

  // Whether the data may be used on this machine. An error has been told.
  Result<void> settle_machine() {
    if (!store_.journal) return {};
    const auto settled = pawld::settle_machine(*store_.journal, options_.machine_id_file,
                                               options_.adopt ? Adopt::kYes : Adopt::kNo, random_);
    if (!settled && settled.error().code != Code::kDenied) {
      log_->error(with_advice(settled.error(), config_));
    } else if (!settled) {
      log_->error(fmt::format(
          "{}: {}. If that pawld still serves, or has served since this copy was made, both "
          "would issue the same tokens: "
          "restore a backup instead (pawld restore). If the data was moved here for good, start "
          "once with --adopt",
          config_.data, settled.error().detail));
    } else if (*settled == Settled::kAdopted) {
      log_->warning(
          fmt::format("{}: adopted from another machine; no pawld may serve the original any more",
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

  Result<void> start_tls(server::Engine& engine) {
    if (!config_.tls.named()) return {};
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) return context.error();
    log_->info(fmt::format("TLS with the certificate of {}", (*context)->summary()));
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    engine.set_certificate_expiry(tls_->expires());
    return {};
  }

  // SIGHUP: files that may have changed are read again. What is wrong changes nothing: a slip in a
  // file must not lock everyone out, nor let everyone in.
  void reload(server::Engine& engine) {
    if (config_.auth_file.empty() && !config_.tls.named())
      log_->info("HUP: there is no auth_file to read again, and no certificate");
    if (!config_.auth_file.empty() && !read_users(engine))
      log_->error("HUP: the users stay as they were");
    if (config_.tls.named()) reload_tls(engine);
  }

  void reload_tls(server::Engine& engine) {
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) {
      return log_->error(
          fmt::format("the old certificate stays in use, the new one does not fit: {}",
                      context.error().detail));
    }
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    engine.set_certificate_expiry(tls_->expires());
    // Logged once it is true, for HTTP as well, which has a thread of its own.
    const auto log_it = [log = log_.get(), tls = tls_] {
      log->info(fmt::format("new connections get the certificate of {}", tls->summary()));
    };
    if (!web_) return log_it();
    web_->use_tls(tls_);
    web_->after_changes(log_it);
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

  int stop_waiting() {
    log_->info("stopping: a signal ended the wait; nothing was changed");
    return kExitOk;
  }

  int refuse(const Error& error) {
    log_->error(with_advice(error, config_));
    return exit_code_of(error);
  }

  // What the disk holds is no longer known: no destructor may write to it, and nobody may be told
  // anything.
  [[noreturn]] void die() {
    log_->error("stopping at once without answering; a restart recovers what was acknowledged");
    log_.reset();
    ::_exit(kExitStore);
  }

  const Options& options_;
  const Config& config_;
  std::unique_ptr<Log> log_;
  Patience patience_;
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
      Result<void> record(std::string_view /*key*/, std::string_view /*value*/) override {
        return {};
      }
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
