#include "guard/etcd/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/boot_clock.h"
#include "base/limits.h"
#include "net/socket.h"
#include "tls/context.h"

namespace pawl::guard {
namespace {

// After this long the same bytes go to another endpoint.
constexpr Nanos kAttemptTime = std::chrono::seconds(2);
// Nothing listens at any endpoint for so long: it is not waited for any longer.
constexpr Nanos kRefusedTime = std::chrono::seconds(1);
constexpr std::int64_t kPage = 5000;

Error went_back() {
  return {Code::kInvalid,
          "etcd has an older state than before: it was restored from a copy, and fences may be "
          "lower than what was acknowledged. Run pawl guard compact etcd for each guard, which "
          "refuses all tokens older than the live ones"};
}

bool only_reads(const etcd::TxnRequest& request) {
  const auto reads = [](const etcd::RequestOp& op) {
    return std::holds_alternative<etcd::RangeRequest>(op);
  };
  return std::all_of(request.success.begin(), request.success.end(), reads) &&
         std::all_of(request.failure.begin(), request.failure.end(), reads);
}

Error refused_by_etcd(const std::string& text, bool denied) {
  return {denied ? Code::kDenied : Code::kInvalid, fmt::format("etcd refuses it: {}", text)};
}

}  // namespace

Result<std::unique_ptr<EtcdConnection>> EtcdConnection::open(const EtcdOptions& options) {
  auto endpoints = etcd::parse_endpoints(options.endpoints);
  if (!endpoints) return endpoints.error();
  etcd::DriverOptions wanted{.endpoints = *std::move(endpoints)};
  if (options.tls) {
    auto tls = tls::ClientContext::load(
        {.ca = options.tls_ca, .cert = options.tls_cert, .key = options.tls_key});
    if (!tls) return tls.error();
    wanted.tls = *std::move(tls);
  }
  const Nanos limit = options.time_limit;
  wanted.client.user = options.user;
  wanted.client.password = options.password;
  wanted.client.attempt_time = std::min(kAttemptTime, limit);
  wanted.client.connect_time = std::min(kAttemptTime, limit);
  wanted.client.authenticate_time = limit;
  wanted.client.silence_max = limit;
  auto driver = etcd::Driver::create(std::move(wanted));
  if (!driver) return driver.error();
  return std::unique_ptr<EtcdConnection>(new EtcdConnection(
      *std::move(driver), fmt::format("etcd {}", options.endpoints), options.time_limit));
}

EtcdConnection::EtcdConnection(std::unique_ptr<etcd::Driver> driver, std::string name,
                               std::chrono::milliseconds time_limit)
    : driver_(std::move(driver)), name_(std::move(name)), time_limit_(time_limit) {}

template <class Done>
bool EtcdConnection::run_until(std::chrono::milliseconds limit, const Done& done) {
  const Instant begin = boot_now();
  const Instant end = begin + limit;
  while (true) {
    const Instant now = boot_now();
    driver_->pump(now);
    for (etcd::Event& event : driver_->client().take_events()) {
      if (const auto* trouble = std::get_if<etcd::Trouble>(&event)) {
        trouble_ = fmt::format("{}: {}", trouble->endpoint, trouble->text);
      } else {
        events_.push_back(std::move(event));
      }
    }
    for (etcd::AskDone& answer : driver_->client().take_asked())
      asked_.push_back(std::move(answer));
    if (done()) return true;
    if (now >= end || (now >= begin + kRefusedTime && is_refused())) return false;
    std::vector<pollfd> wanted = driver_->interest();
    static_cast<void>(::poll(wanted.data(), wanted.size(),
                             poll_timeout(std::min(end, driver_->deadline()) - now)));
  }
}

bool EtcdConnection::is_refused() const {
  const auto views = driver_->client().endpoints();
  return std::all_of(views.begin(), views.end(), [](const etcd::EndpointView& view) {
    return !view.usable && view.error.find(net::error_text(ECONNREFUSED)) != std::string::npos;
  });
}

Error EtcdConnection::no_answer(bool sent) const {
  const std::string why = trouble_.empty() ? "" : fmt::format(" ({})", trouble_);
  if (sent)
    return {Code::kUnknown, fmt::format("{} did not answer{}; it may have happened", name_, why)};
  return {Code::kUnavailable, fmt::format("{} cannot be reached{}. Nothing happened.", name_, why)};
}

Result<EtcdTransacted> EtcdConnection::transact(const etcd::TxnRequest& request,
                                                EtcdSending sending) {
  const bool changes = !only_reads(request);
  std::string bytes = etcd::encode(request);
  if (bytes.size() > limits::kEtcdRequestMax)
    return Error{Code::kInvalid, fmt::format("a transaction of {} bytes is more than the {} that "
                                             "etcd takes. Write less at once",
                                             bytes.size(), limits::kEtcdRequestMax)};
  etcd::Client& client = driver_->client();
  const etcd::CallId call = sending == EtcdSending::kOnce
                                ? client.transact_once(std::move(bytes), Nanos(time_limit_))
                                : client.transact(std::move(bytes));
  events_.clear();
  std::optional<etcd::TxnDone> done;
  const bool answered = run_until(time_limit_, [&] {
    for (etcd::Event& event : events_) {
      auto* end = std::get_if<etcd::TxnDone>(&event);
      if (end != nullptr && end->call == call) done = std::move(*end);
    }
    events_.clear();
    return done.has_value();
  });
  connected_ = answered;
  if (!answered) {
    const bool sent = client.was_sent(call);
    client.cancel(call);
    return no_answer(sent && changes);
  }
  if (done->outcome == etcd::TxnDone::Outcome::kFatal) {
    // Of several sends only the last was refused.
    if (done->unknown || done->sends.count > 1) {
      trouble_ = done->text;
      return no_answer(changes);
    }
    return refused_by_etcd(done->text, done->denied);
  }
  if (done->went_back) return went_back();
  return EtcdTransacted{std::move(done->answer), done->sends.count > 1};
}

Result<std::vector<etcd::KeyValue>> EtcdConnection::range(const std::string& key,
                                                          const std::string& range_end) {
  etcd::Client& client = driver_->client();
  std::vector<etcd::KeyValue> found;
  std::string from = key;
  while (true) {
    const etcd::CallId call = client.range({.key = from, .range_end = range_end, .limit = kPage});
    events_.clear();
    std::optional<etcd::RangeDone> done;
    connected_ = run_until(time_limit_, [&] {
      for (etcd::Event& event : events_) {
        auto* end = std::get_if<etcd::RangeDone>(&event);
        if (end != nullptr && end->call == call) done = std::move(*end);
      }
      events_.clear();
      return done.has_value();
    });
    if (!done) {
      client.cancel(call);
      return no_answer(false);
    }
    if (done->outcome != etcd::RangeDone::Outcome::kAnswered)
      return refused_by_etcd(done->text, done->denied);
    if (done->went_back) return went_back();
    for (etcd::KeyValue& each : done->answer.kvs) found.push_back(std::move(each));
    if (!done->answer.more || done->answer.kvs.empty()) return found;
    from = found.back().key + '\0';
  }
}

Result<etcd::AskDone> EtcdConnection::ask(const std::string& path, std::string request) {
  etcd::Client& client = driver_->client();
  const etcd::CallId call = client.ask(path, std::move(request));
  asked_.clear();
  std::optional<etcd::AskDone> done;
  connected_ = run_until(time_limit_, [&] {
    for (etcd::AskDone& each : asked_) {
      if (each.call == call) done = std::move(each);
    }
    asked_.clear();
    return done.has_value();
  });
  if (done) return *std::move(done);
  client.cancel(call);
  return no_answer(false);
}

std::vector<etcd::EndpointView> EtcdConnection::endpoints() {
  const auto known = [this] {
    const auto views = driver_->client().endpoints();
    return std::all_of(views.begin(), views.end(),
                       [](const etcd::EndpointView& view) { return view.status.has_value(); });
  };
  static_cast<void>(run_until(std::chrono::seconds(1), known));
  return driver_->client().endpoints();
}

EtcdTransact EtcdConnection::as_function() {
  return [this](const etcd::TxnRequest& request, EtcdSending sending) {
    return transact(request, sending);
  };
}

}  // namespace pawl::guard
