#include "store/etcd/etcd_store.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/boot_clock.h"

namespace pawl::store::etcd_log {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// As many requests as were answered come again within this time; waiting for them makes the next
// transaction carry all of them instead of half.
constexpr Nanos kGather = microseconds(300);
constexpr Nanos kStatusInterval = seconds(5);

cluster::ClusterSettings cluster_settings(const EtcdStoreSettings& settings) {
  cluster::ClusterSettings made;
  made.address = settings.address;
  made.role_ttl = settings.role_ttl;
  made.heartbeat = settings.role_ttl / 5;
  // Often enough for a role that is handed over to be taken within a second.
  made.poll = std::min<Nanos>(settings.role_ttl / 10, milliseconds(500));
  made.jitter = settings.role_ttl / 25;
  made.gather = kGather;
  return made;
}

etcd::ClientOptions client_options(const EtcdStoreSettings& settings) {
  etcd::ClientOptions options;
  options.user = settings.user;
  options.password = settings.password;
  options.attempt_time = std::min<Nanos>(seconds(1), settings.role_ttl / 5);
  options.status_interval = kStatusInterval;
  return options;
}

Error system_error(const char* what) {
  return Error{Code::kUnavailable, fmt::format("{}: {}", what, net::error_text(errno))};
}

}  // namespace

Result<std::unique_ptr<EtcdStore>> EtcdStore::open(const EtcdStoreSettings& settings,
                                                   Random& random, Log& log) {
  const auto endpoints = etcd::parse_endpoints(settings.endpoints);
  if (!endpoints) return endpoints.error();
  auto driver = etcd::Driver::create(
      {.endpoints = *endpoints, .tls = settings.tls, .client = client_options(settings)});
  if (!driver) return driver.error();
  std::unique_ptr<EtcdStore> store(new EtcdStore(settings, std::move(*driver), random, log));
  store->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!store->epoll_) return system_error("epoll_create1");
  // CLOCK_BOOTTIME, as everything that is agreed with other machines.
  store->timer_ = UniqueFd(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!store->timer_) return system_error("timerfd_create");
  epoll_event event{EPOLLIN, {.fd = store->timer_.get()}};
  if (::epoll_ctl(store->epoll_.get(), EPOLL_CTL_ADD, store->timer_.get(), &event) != 0)
    return system_error("epoll_ctl");
  store->rearm();
  return store;
}

EtcdStore::EtcdStore(const EtcdStoreSettings& settings, std::unique_ptr<etcd::Driver> driver,
                     Random& random, Log& log)
    : driver_(std::move(driver)),
      trouble_log_(log),
      log_(driver_->client(),
           {.cluster = settings.cluster,
            .self = {.address = settings.address,
                     .id = random.next(),
                     .pid = static_cast<std::uint64_t>(::getpid())},
            .compaction = settings.compaction,
            .quota_bytes = settings.quota_bytes},
           boot_now, [this] { flush(); }),
      store_(cluster_settings(settings), log_, random,
             [] { return boot_now().time_since_epoch(); }) {}

void EtcdStore::set_address(const std::string& address, std::string_view http_port) {
  log_.set_address(address);
  store_.set_address(http_port.empty() ? address : fmt::format("{}/{}", address, http_port));
}

void EtcdStore::run() {
  std::uint64_t expirations = 0;
  (void)::read(timer_.get(), &expirations, sizeof expirations);
  driver_->pump(boot_now());
  for (const etcd::Event& event : driver_->client().take_events()) {
    if (const auto* trouble = std::get_if<etcd::Trouble>(&event)) {
      trouble_log_.warning(boot_now().time_since_epoch(),
                           fmt::format("etcd {}: {}", trouble->endpoint, explained(trouble->text)),
                           {{"event", "etcd_trouble"}, {"endpoint", trouble->endpoint}});
    }
    log_.on_event(event);
  }
  store_.on_timer();
  log_.set_role(store_.is_active() ? "active" : "standby");
  log_.on_timer();
  if (log_.address_is_taken() && !std::exchange(warned_of_address_, true)) {
    trouble_log_.warning(boot_now().time_since_epoch(),
                         "another pawld of this cluster has the same --advertise address");
  }
  if (leaving_ && !store_.has_role()) log_.say_farewell();
  rearm();
}

void EtcdStore::leave() {
  leaving_ = true;
  store_.leave();
  run();
}

bool EtcdStore::has_left() const {
  return leaving_ && log_.farewell_done();
}

void EtcdStore::flush() {
  if (!epoll_) return;
  driver_->client().pump(boot_now());
  rearm();
}

// A descriptor that was closed has left epoll by itself, and its number may be in use again: so all
// of them are registered each time.
void EtcdStore::rearm() {
  for (const pollfd& wanted : driver_->interest()) {
    const std::uint32_t events = ((wanted.events & POLLIN) != 0 ? std::uint32_t{EPOLLIN} : 0U) |
                                 ((wanted.events & POLLOUT) != 0 ? std::uint32_t{EPOLLOUT} : 0U);
    epoll_event event{events, {.fd = wanted.fd}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, wanted.fd, &event) != 0) {
      const bool added = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wanted.fd, &event) == 0;
      PAWL_ASSERT(added);
    }
  }
  const Nanos due = std::min({driver_->deadline().time_since_epoch(), store_.next_timer(),
                              log_.next_timer().time_since_epoch()});
  // Zero would switch it off.
  const Nanos at = std::clamp<Nanos>(due, Nanos(1), boot_now().time_since_epoch() + seconds(60));
  itimerspec when{};
  when.it_value.tv_sec = std::chrono::floor<seconds>(at).count();
  when.it_value.tv_nsec = (at - std::chrono::floor<seconds>(at)).count();
  const bool set = ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0;
  PAWL_ASSERT(set);
}

}  // namespace pawl::store::etcd_log
