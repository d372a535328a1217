#include "pawld/etcd_access.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/boot_clock.h"
#include "pawld/open_store.h"

namespace pawl::pawld {
namespace {

using store::cluster::SharedLog;

// Without an answer for so long etcd is not there.
constexpr Nanos kPatience = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<EtcdAccess>> EtcdAccess::open(const Config& config) {
  if (const auto checked = check_cluster(config.etcd, config.resp); !checked)
    return checked.error();
  auto settings = etcd_settings(config);
  if (!settings) return settings.error();
  const auto endpoints = etcd::parse_endpoints(settings->endpoints);
  if (!endpoints) return endpoints.error();
  etcd::ClientOptions client;
  client.user = settings->user;
  client.password = settings->password;
  auto driver = etcd::Driver::create(
      {.endpoints = *endpoints, .tls = settings->tls, .client = std::move(client)});
  if (!driver) return driver.error();
  return std::unique_ptr<EtcdAccess>(new EtcdAccess(std::move(*driver), settings->cluster));
}

EtcdAccess::EtcdAccess(std::unique_ptr<etcd::Driver> driver, std::string cluster)
    : driver_(std::move(driver)),
      cluster_(std::move(cluster)),
      log_(driver_->client(), {.cluster = cluster_}, boot_now,
           [this] { driver_->client().pump(boot_now()); }) {
  log_.listen(this);
}

Result<void> EtcdAccess::read() {
  head_.reset();
  copy_.reset();
  for (std::uint64_t from = 1;;) {
    answer_.reset();
    log_.read({.from = from, .most = store::cluster::kEntriesAtOnce});
    if (auto answered = wait(); !answered) return answered;
    has_entries_ = !answer_->entries.empty();
    if (answer_->head.empty()) return {};
    if (auto taken = take(*answer_); !taken) return taken;
    const bool progress = copy_->next() != from;
    if (copy_->next() > head_->last || !progress) return copy_->complete(*head_);
    from = copy_->next();
  }
}

Result<void> EtcdAccess::take(const SharedLog::ReadAnswer& answer) {
  auto head = store::cluster::decode_head(answer.head);
  if (!head) return head.error();
  head_ = std::move(*head);
  // Not begun, or what would come next is cleaned away meanwhile.
  if (!copy_ || copy_->next() < head_->first) {
    copy_.emplace(*head_, store::cluster::CleaningLimits{});
    records_ = {};
  }
  for (const auto& entry : answer.entries) {
    if (entry.number < copy_->next()) continue;
    if (auto taken = copy_->take(entry.number, entry.bytes); !taken) return taken;
    records_.apply(store::cluster::operations_of(entry.bytes));
  }
  return {};
}

Result<void> EtcdAccess::create(const SharedLog::Write& write) {
  answer_.reset();
  wrote_.reset();
  log_.write(write);
  if (auto answered = wait(); !answered) {
    return Error{Code::kUnknown, answered.error().detail +
                                     ". It may have been written all the same: look with "
                                     "pawld dump before you try again"};
  }
  if (wrote_->outcome == SharedLog::WriteAnswer::Outcome::kApplied || wrote_->found == write.head)
    return {};
  return Error{Code::kInvalid,
               fmt::format("a store of cluster {} has come to be in etcd meanwhile", cluster_)};
}

Result<void> EtcdAccess::wait() {
  const Instant end = boot_now() + kPatience;
  const auto is_answered = [this] { return answer_ || wrote_ || failure_; };
  while (!is_answered()) {
    const Instant now = boot_now();
    if (now >= end) return Error{Code::kUnavailable, "etcd does not answer" + why()};
    driver_->pump(now);
    for (const etcd::Event& event : driver_->client().take_events()) log_.on_event(event);
    if (is_answered()) break;
    std::vector<pollfd> wanted = driver_->interest();
    (void)::poll(wanted.data(), wanted.size(),
                 poll_timeout(std::min(driver_->deadline(), end) - now));
  }
  if (failure_) return *failure_;
  if (answer_ && !answer_->known) return Error{Code::kUnavailable, "etcd does not answer" + why()};
  return {};
}

std::string EtcdAccess::why() const {
  std::string text;
  for (const etcd::EndpointView& endpoint : driver_->client().endpoints())
    text += fmt::format(
        "{} {}: {}", text.empty() ? ":" : ",", endpoint.name,
        endpoint.error.empty() ? "no answer" : store::etcd_log::explained(endpoint.error));
  return text;
}

}  // namespace pawl::pawld
