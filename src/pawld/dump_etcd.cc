// `pawld dump --store etcd`: prints what a cluster keeps in etcd. It only reads, so it may be used
// while pawld serve.
#include <fmt/format.h>
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/boot_clock.h"
#include "base/hex.h"
#include "core/records.h"
#include "etcd/driver.h"
#include "pawld/commands.h"
#include "pawld/exit_codes.h"
#include "pawld/open_store.h"
#include "store/cluster/log_copy.h"
#include "store/etcd/etcd_log.h"

namespace pawl::pawld {
namespace {

using store::cluster::Head;
using store::cluster::LogCopy;
using store::cluster::SharedLog;

// Without an answer for so long etcd is not there.
constexpr Nanos kPatience = std::chrono::seconds(10);

class Reader final : private SharedLog::Listener {
 public:
  Reader(etcd::Driver& driver, const std::string& cluster)
      : driver_(driver), log_(driver.client(), {.cluster = cluster}, boot_now, [this] {
          driver_.client().pump(boot_now());
        }) {
    log_.listen(this);
  }

  // Reads everything: the head, and the records.
  Result<void> run() {
    std::uint64_t from = 1;
    for (;;) {
      answer_.reset();
      log_.read({.from = from, .most = store::cluster::kEntriesAtOnce});
      if (auto answered = wait(); !answered) return answered;
      if (answer_->head.empty())
        return Error{Code::kInvalid, "there is no store of this cluster in etcd"};
      auto head = store::cluster::decode_head(answer_->head);
      if (!head) return head.error();
      head_ = *head;
      if (!copy_ || copy_->next() < head_.first)
        copy_.emplace(head_, store::cluster::CleaningLimits{});
      for (const auto& entry : answer_->entries) {
        if (entry.number < copy_->next()) continue;
        if (auto taken = copy_->take(entry.number, entry.bytes); !taken) return taken;
      }
      const bool progress = copy_->next() != from;
      if (copy_->next() > head_.last || !progress) return copy_->complete(head_);
      from = copy_->next();
    }
  }
  [[nodiscard]] const Head& head() const { return head_; }
  [[nodiscard]] LogCopy& copy() { return *copy_; }

 private:
  void written(const SharedLog::WriteAnswer& /*answer*/) override {}
  void read(const SharedLog::ReadAnswer& answer) override { answer_ = answer; }
  void failed(const Error& error) override { failure_ = error; }

  Result<void> wait() {
    const Instant end = boot_now() + kPatience;
    while (!answer_ && !failure_) {
      const Instant now = boot_now();
      if (now >= end) return Error{Code::kUnavailable, "etcd does not answer" + why()};
      driver_.pump(now);
      for (const etcd::Event& event : driver_.client().take_events()) log_.on_event(event);
      if (answer_ || failure_) break;
      std::vector<pollfd> wanted = driver_.interest();
      (void)::poll(wanted.data(), wanted.size(),
                   poll_timeout(std::min(driver_.deadline(), end) - now));
    }
    if (failure_) return *failure_;
    return {};
  }

  std::string why() {
    std::string text;
    for (const etcd::EndpointView& endpoint : driver_.client().endpoints())
      text += fmt::format("{} {}: {}", text.empty() ? ":" : ",", endpoint.name,
                          endpoint.error.empty() ? "no answer" : endpoint.error);
    return text;
  }

  etcd::Driver& driver_;
  store::etcd_log::EtcdLog log_;
  std::optional<SharedLog::ReadAnswer> answer_;
  std::optional<Error> failure_;
  Head head_;
  std::optional<LogCopy> copy_;
};

void print(const std::string& cluster, const Head& head, LogCopy& copy) {
  const bool active = head.state == store::cluster::HeadState::kActive;
  fmt::print("cluster {}: incarnation {}, epoch {}, write {}, {} {}\n", cluster,
             to_hex(head.incarnation), head.epoch, head.n, active ? "active" : "resigned",
             head.address);
  fmt::print("log: entries {} to {}, {} bytes, {} of them live; batch {}, last token {}\n",
             head.first, head.last, copy.index().bytes(), copy.index().live_bytes(), head.sequence,
             head.covered);
  for (const auto& [key, value] : copy.take_records())
    fmt::print("  {}\n", core::describe(key, value));
}

Result<void> dump(const Config& config) {
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
  Reader reader(**driver, settings->cluster);
  if (auto read = reader.run(); !read) return read;
  print(settings->cluster, reader.head(), reader.copy());
  return {};
}

}  // namespace

int dump_etcd(const Options& options) {
  const auto checked = check_cluster(options.config.etcd, options.config.resp);
  const auto dumped = checked ? dump(options.config) : checked;
  if (dumped) return kExitOk;
  fmt::print(stderr, "pawld: {}\n", with_advice(dumped.error(), options.config));
  return exit_code_of(dumped.error());
}

}  // namespace pawl::pawld
