// Serving: from an unopened store to a clean stop.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "auth/users_disk.h"
#include "base/assert.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "pawld/busy_retry.h"
#include "pawld/commands.h"
#include "pawld/descriptors.h"
#include "pawld/exit_codes.h"
#include "pawld/http_endpoint.h"
#include "pawld/open_store.h"
#include "server/engine.h"
#include "server/listener.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "tls/context.h"

namespace pawl::pawld {
namespace {

void apply_limits(const MemoryLimits& limits, server::EngineSettings& settings) {
  settings.core.in_all.leases = limits.leases;
  settings.core.in_all.bytes = limits.lease_bytes;
  settings.core.in_all.waiters = limits.waiters;
  settings.observers_max = limits.observers;
  settings.core.history_bytes = limits.history_bytes;
  settings.output_total_max = limits.output_bytes;
  settings.core.per_user.leases = limits.leases_per_user;
  settings.core.per_user.bytes = limits.lease_bytes_per_user;
  settings.core.per_user.waiters = limits.waiters_per_user;
  settings.observers_per_user = limits.observers_per_user;
}

// Tells the service manager how far pawld has come: "READY=1", "STOPPING=1". Does nothing if there
// is none. The protocol is that of sd_notify(3): one datagram to the socket named by NOTIFY_SOCKET,
// where a leading @ means the abstract namespace.
void notify(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') ||
      std::strlen(path) >= sizeof address.sun_path)
    return;
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

// The addresses as bound. `http` is empty if HTTP is off.
struct ListenAddresses {
  std::string resp, http;
};

std::string port_of(const std::string& address) {
  PAWL_ASSERT(address.rfind(':') != std::string::npos);
  return address.substr(address.rfind(':') + 1);
}

bool write_port_file(const std::string& path, const ListenAddresses& bound) {
  if (path.empty()) return true;
  // Renamed when complete: a process that waits for the file must not read half a number.
  const std::string partial = path + ".partial";
  {
    std::ofstream out(partial, std::ios::trunc);
    out << port_of(bound.resp) << '\n';
    if (!bound.http.empty()) out << port_of(bound.http) << '\n';
    if (!out.flush()) return false;
  }
  return std::rename(partial.c_str(), path.c_str()) == 0;
}

// Prints commands to try, for a person who has started pawld by hand.
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
        limits_(fit_to_descriptor_limit({.users = !config_.auth_file.empty(),
                                         .tls = config_.tls.configured(),
                                         .http = config_.http != kHttpOff},
                                        *log_)),
        retry_(config_.wait, *log_),
        loop_(*log_, {.handshakes = limits_.handshakes, .newcomers = limits_.newcomers}) {}

  int run() {
    if (config_.store == StoreKind::kMemory)
      log_->warning("--store memory is for tests: no grant survives this process");
    store_.files().on_buffered([this](const std::string& path) {
      log_->info(fmt::format(
          "{}: the file system refuses direct writes (O_DIRECT); the journal uses buffered writes "
          "and fdatasync, which is as durable",
          path));
    });
    if (const auto opened =
            retry_.run<void>([this] { return store_.open(config_, random_, *log_); });
        !opened)
      return retry_.interrupted() ? stop_waiting() : refuse(opened.error());
    if (const auto checked = check_machine(); !checked) return exit_code_of(checked.error());

    server::EngineSettings settings;
    settings.ttl_max = config_.max_ttl;
    settings.connections_max = limits_.ordinary;
    settings.connections_reserved = limits_.reserved;
    settings.newcomers_max = limits_.newcomers;
    apply_limits(config_.limits, settings);
    settings.delay_max = config_.max_delay;
    settings.core.hash_seed = random_.next();
    server::Engine engine(settings, {store_.store(), clock_, random_, loop_, *log_,
                                     [this](const Error& error) { die(error); }});
    if (!config_.auth_file.empty() && !read_users(engine)) return kExitConfig;
    loop_.on_reload([this, &engine] { reload(engine); });
    // Listen before the store is loaded: clients get -LOADING meanwhile, and a port in use is
    // noticed at once.
    if (const auto ready = start_tls(engine); !ready) {
      log_->error(ready.error().detail);
      return kExitConfig;
    }
    const auto address = listen();
    if (!address) {
      if (retry_.interrupted()) return stop_waiting();
      log_->error(address.error().detail);
      return kExitConfig;
    }
    engine.set_address(advertised(*address));
    if (store_.etcd() != nullptr) return serve_cluster(engine, *address);
    bool stopped = false;
    const auto loaded = engine.load([&] { return !(stopped = !loop_.poll(engine)); });
    if (stopped) return stop();
    if (!loaded) return refuse(loaded.error());
    // Loading used a third more memory than what stays; return it to the system.
    ::malloc_trim(0);
    warn_of_small_volume();  // Before maintenance takes more of the free space.
    store_.start_threads();
    if (!loaded->clean && !loaded->fresh)
      log_->info(fmt::format(
          "the last run did not stop cleanly; its acknowledged state was recovered. "
          "Tokens continue after {}: they are reserved in blocks of {}, and the rest of "
          "a block is skipped, so the gap does not mean lost grants",
          engine.totals().last_token.value, limits::kTokenBlock));
    if (const Millis wait = engine.core().restoring_for(engine.now()); wait > Millis(0))
      log_->warning(fmt::format(
          "restored from a backup: nothing is granted for {} s, so that leases granted after the "
          "backup can expire; waiters queue",
          std::chrono::ceil<std::chrono::seconds>(wait).count()));
    log_start(*address, *loaded, engine.totals());
    tell_ready(*address);
    loop_.run(engine);
    return stop();
  }

 private:
  // One of several: which one is active, and when, the store says.
  int serve_cluster(server::Engine& engine, const ListenAddresses& at) {
    store::etcd_log::EtcdStore& store = *store_.etcd();
    store.set_address(advertised(at), advertised_http_port(at));
    if (const auto attached = loop_.attach(store); !attached) return refuse(attached.error());
    loop_.on_stop({.begin =
                       [&] {
                         store.leave();
                         engine.hand_over();
                       },
                   .done = [&store] { return store.has_left(); },
                   .limit = config_.etcd.role_ttl});
    engine.stand_by();
    log_->info(fmt::format("pawld {} listens on {}{}; cluster {} in etcd at {}, advertised as {}",
                           kVersion, at.resp, at.http.empty() ? "" : " and http " + at.http,
                           config_.etcd.cluster, config_.etcd.endpoints, advertised(at)),
               {{"event", "serving"},
                {"version", kVersion},
                {"address", at.resp},
                {"http_address", at.http},
                {"tls", tls_ ? "yes" : "no"},
                {"cluster", config_.etcd.cluster},
                {"advertised", advertised(at)}});
    tell_ready(at);
    loop_.run(engine);
    return stop();
  }

  // Where clients reach this pawld.
  [[nodiscard]] std::string advertised(const ListenAddresses& at) const {
    return config_.etcd.advertise.empty() ? at.resp : config_.etcd.advertise;
  }

  // Where a stand-by sends requests over HTTP: none when only this machine can reach it, and
  // clients may be elsewhere.
  [[nodiscard]] std::string advertised_http_port(const ListenAddresses& at) const {
    const auto http = server::parse_listen_address(at.http);
    const auto resp = server::parse_listen_address(advertised(at));
    if (at.http.empty() || !http || !resp) return "";
    const auto is_local = [](const server::ListenAddress& address) {
      const auto loopback = server::is_loopback(address);
      return loopback && *loopback;
    };
    return is_local(*http) && !is_local(*resp) ? "" : http->port;
  }

  void tell_ready(const ListenAddresses& at) {
    notify("READY=1");
    if (config_.log_format != LogFormat::kText) return;
    log_->flush();
    print_hints(config_, at, tls_.get());
  }

  // HTTP first: once RESP answers, HTTP answers too.
  Result<ListenAddresses> listen() {
    PAWL_ASSERT(!http_);
    if (const auto opened = loop_.open(); !opened) return opened.error();
    store_.store().wake_with(&loop_);
    ListenAddresses bound;
    if (config_.http != kHttpOff) {
      http_.emplace(*log_, config_, limits_);
      if (tls_) http_->use_tls(tls_);
      const auto started = http_->start(loop_, retry_);
      if (!started) return started.error();
      bound.http = *started;
    }
    const auto address = server::parse_listen_address(config_.resp);
    if (!address) return address.error();
    auto listener = retry_.run<server::Listener>([&] { return server::listen_on(*address); });
    if (!listener) {
      return Error{Code::kInvalid,
                   listener.error().detail +
                       ". Choose another address with --resp, or stop the process that uses it"};
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

  // Compares the free space and the store's own files together, because a new store on a small
  // volume has not taken its space yet.
  void warn_of_small_volume() {
    const auto space = store_.store().space();
    if (!space) return;
    const std::uint64_t volume = space->free + server::read_process(config_.data).store_bytes;
    if (volume >= space->volume_needed) return;
    log_->warning(
        fmt::format("{}: the volume is too small: {} MiB are available for the store, {} MiB are "
                    "needed. The store's own files can fill the disk, and then no lock is granted. "
                    "Use a larger volume, or a smaller segment_bytes for a new store",
                    config_.data, volume >> 20, (space->volume_needed + (1 << 20) - 1) >> 20));
  }

  // Whether the data may be used on this machine. An error was logged.
  Result<void> check_machine() {
    const auto checked = store_.check_machine(options_.machine_id_file,
                                              options_.adopt ? Adopt::kYes : Adopt::kNo, random_);
    if (!checked && checked.error().code != Code::kDenied) {
      log_->error(with_advice(checked.error(), config_));
    } else if (!checked) {
      log_->error(fmt::format(
          "{}: {}. If that pawld still serves, or has served since this copy was made, both would "
          "issue the same tokens: restore a backup instead (pawld restore). If the data was moved "
          "here for good, start once with --adopt",
          config_.data, checked.error().detail));
    } else if (*checked == MachineCheck::kAdopted) {
      log_->warning(
          fmt::format("{}: adopted from another machine; no pawld may serve the original any more",
                      config_.data));
    }
    return checked ? Result<void>() : checked.error();
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
    if (!config_.tls.configured()) return {};
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) return context.error();
    log_->info(fmt::format("TLS with the certificate of {}", (*context)->summary()));
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    engine.set_certificate_expiry(tls_->expires());
    return {};
  }

  // SIGHUP: reads users and certificate again. A file that is wrong changes nothing: a mistake in
  // it must neither lock everyone out nor let everyone in.
  void reload(server::Engine& engine) {
    if (config_.auth_file.empty() && !config_.tls.configured())
      log_->info("SIGHUP: nothing to reload: neither auth_file nor a certificate is configured");
    if (!config_.auth_file.empty() && !read_users(engine))
      log_->error("SIGHUP: auth_file not reloaded, keeping the previous users");
    if (config_.tls.configured()) reload_tls(engine);
  }

  void reload_tls(server::Engine& engine) {
    auto context = tls::ServerContext::load(config_.tls);
    if (!context) {
      return log_->error(fmt::format("SIGHUP: cannot load new certificate, keeping the old one: {}",
                                     context.error().detail));
    }
    tls_ = std::move(*context);
    loop_.use_tls(tls_);
    engine.set_certificate_expiry(tls_->expires());
    // Logged once it is in force for HTTP as well, which has a thread of its own.
    const auto log_it = [log = log_.get(), tls = tls_] {
      log->info(fmt::format("SIGHUP: new connections use the certificate of {}", tls->summary()));
    };
    if (!http_) return log_it();
    http_->use_tls(tls_);
    http_->after_changes(log_it);
  }

  int stop() {
    notify("STOPPING=1");
    if (http_) http_->stop();  // Before the engine is destroyed: no request may reach it then.
    log_->info("stopping: all connections are closed, leases are kept");
    const auto closed = store_.close();
    if (!closed)
      log_->error(fmt::format("the store did not close cleanly: {}", closed.error().detail));
    const int code = closed ? kExitOk : kExitStore;
    if (!store_.backup_hangs()) return code;
    log_->warning(
        "a backup was abandoned because its disk does not answer; it may have left a directory "
        "DIR.partial",
        {{"event", "backup_abandoned"}});
    log_.reset();
    ::_exit(code);  // Its thread still uses what a return would destroy.
  }

  int stop_waiting() {
    log_->info("stopping: a signal ended the wait; nothing was changed");
    return kExitOk;
  }

  int refuse(const Error& error) {
    log_->error(with_advice(error, config_));
    return exit_code_of(error);
  }

  // The content of the disk is no longer known: no destructor may write to it, and nothing may be
  // answered any more.
  [[noreturn]] void die(const Error& error) {
    // Of a store that several share an operator may have to decide what is true.
    const int code = store_.etcd() == nullptr ? kExitStore : exit_code_of(error);
    log_->error(code == kExitStore
                    ? "exiting at once without answering; a restart recovers what was acknowledged"
                    : "exiting at once without answering; start it again once that is settled");
    log_.reset();
    ::_exit(code);
  }

  const Options& options_;
  const Config& config_;
  std::unique_ptr<Log> log_;
  const ConnectionLimits limits_;
  BusyRetry retry_;
  SystemRandom random_;
  server::SystemClock clock_;
  OpenStore store_;
  std::shared_ptr<const tls::ServerContext> tls_;  // Null: connections are plain.
  server::Loop loop_;
  std::optional<HttpEndpoint> http_;
};

}  // namespace

int serve(const Options& options) {
  return Daemon(options).run();
}

}  // namespace pawl::pawld
