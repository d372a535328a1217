#include "drill/worker_process.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "base/assert.h"
#include "drill/worker_messages.h"

namespace pawl::drill {
namespace {

constexpr int kGracefulEndMs = 2'000;

client::Instant instant(const json::object& line, const char* key) {
  return client::Instant(Nanos(static_cast<std::int64_t>(number(line, key))));
}

LeaseState state_from(std::string_view word) {
  for (const LeaseState state : {LeaseState::kHeld, LeaseState::kAtRisk, LeaseState::kUncertain}) {
    if (to_text(state) == word) return state;
  }
  return LeaseState::kLost;
}

std::optional<WorkerEvent::Kind> kind_from(std::string_view word) {
  struct Known {
    std::string_view word;
    WorkerEvent::Kind kind;
  };
  using enum WorkerEvent::Kind;
  static constexpr std::array kKnown{
      Known{"ready", kReady},       Known{"failed", kFailed},
      Known{"granted", kGranted},   Known{"not_granted", kNotGranted},
      Known{"released", kReleased}, Known{"advanced", kAdvanced},
      Known{"written", kWritten},   Known{"withheld", kWithheld},
      Known{"lease", kLease},       Known{"tried", kTried}};
  for (const Known& known : kKnown) {
    if (known.word == word) return known.kind;
  }
  return std::nullopt;
}

WorkerEvent event_from(const json::object& line) {
  const auto kind = kind_from(text(line, "is"));
  WorkerEvent event{.kind = kind.value_or(WorkerEvent::Kind::kFailed)};
  event.at = instant(line, line.contains("answered") ? "answered" : "at");
  event.sent = instant(line, "sent");
  event.id = number(line, "id");
  event.token = number(line, "token");
  event.code = static_cast<Code>(number(line, "code"));
  event.state = state_from(text(line, "state"));
  event.detail = text(line, kind == WorkerEvent::Kind::kLease ? "reason" : "detail");
  event.outcome = {guard::parse_answer(text(line, "answer")).value_or(guard::Answer::kBroken),
                   flag(line, "let_through"), event.detail};
  if (const json::value* rows = line.if_contains("rows"); rows != nullptr && !rows->is_null())
    event.outcome.rows = number(line, "rows");
  if (const json::value* ways = line.if_contains("ways")) {
    for (const json::value& each : ways->as_array())
      event.ways.push_back(tried_way_from(each.as_object()));
  }
  return event;
}

json::object command(const char* word) {
  return {{"do", word}};
}

}  // namespace

struct WorkerProcess::Reader {
  LineReader lines;
};

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::string& name,
                                                            const DrillConfig& config,
                                                            const std::string& proxy_address) {
  PAWL_ASSERT(!config.pawld.empty());
  auto in = make_pipe();
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto process = Process::start({config.program, "drill-worker"},
                                {.in = in->read.get(), .out = out->write.get()});
  if (!process) return process.error();
  std::unique_ptr<WorkerProcess> worker(
      new WorkerProcess(name, *std::move(process), std::move(in->write), std::move(out->read)));
  const client::Address& pawld = config.pawld.front();
  TlsOptions tls = config.tls;
  // Behind a proxy the certificate is still pawld's.
  if (!proxy_address.empty() && pawld.tls && tls.server_name.empty()) tls.server_name = pawld.host;
  json::object message = command("prepare");
  message["name"] = name;
  message["addresses"] =
      proxy_address.empty() ? to_text(config.pawld) : (pawld.tls ? "tls://" : "") + proxy_address;
  message["user"] = config.auth.user;
  message["secret"] = config.auth.secret;
  message["tls"] = to_json(tls);
  message["target"] = to_json(config.target);
  worker->send(json::serialize(message));
  return worker;
}

WorkerProcess::WorkerProcess(std::string name, Process process, UniqueFd commands, UniqueFd reports)
    : name_(std::move(name)),
      process_(std::move(process)),
      commands_(std::move(commands)),
      reports_(std::move(reports)),
      reader_(std::make_unique<Reader>()) {}

WorkerProcess::~WorkerProcess() {
  commands_.reset();
  if (!running_ || frozen_) return;  // process_ kills it.
  // Its stdout closes when it ends; what it still reports is not needed.
  pollfd end{reports_.get(), POLLIN, 0};
  while (::poll(&end, 1, kGracefulEndMs) > 0 && reader_->lines.read(reports_.get())) {
  }
}

void WorkerProcess::acquire(const std::string& lock, std::chrono::milliseconds ttl,
                            std::chrono::milliseconds wait) {
  json::object message = command("acquire");
  message["lock"] = lock;
  message["ttl_ms"] = ttl.count();
  message["wait_ms"] = wait.count();
  send(json::serialize(message));
}

void WorkerProcess::release() {
  send(json::serialize(command("release")));
}

void WorkerProcess::advance(std::uint64_t token, std::chrono::milliseconds wait) {
  json::object message = command("advance");
  message["token"] = token;
  message["wait_ms"] = wait.count();
  send(json::serialize(message));
}

void WorkerProcess::write(std::uint64_t id, std::uint64_t token, const std::string& value,
                          LeaseCheck check) {
  json::object message = command("write");
  message["id"] = id;
  message["token"] = token;
  message["value"] = value;
  message["check_lease"] = check == LeaseCheck::kBeforeWrite;
  send(json::serialize(message));
}

void WorkerProcess::try_ways(std::uint64_t token) {
  json::object message = command("try_ways");
  message["token"] = token;
  send(json::serialize(message));
}

void WorkerProcess::freeze() {
  process_.freeze();
  frozen_ = true;
}

void WorkerProcess::resume() {
  process_.resume();
  frozen_ = false;
}

void WorkerProcess::kill() {
  process_.kill();
  frozen_ = false;
  on_end();
}

void WorkerProcess::take_over(WorkerProcess& other) {
  process_ = std::move(other.process_);
  commands_ = std::move(other.commands_);
  reports_ = std::move(other.reports_);
  reader_ = std::move(other.reader_);
  events_.clear();
  frozen_ = false;
  running_ = std::exchange(other.running_, false);
}

std::vector<pollfd> WorkerProcess::interest() const {
  return {{reports_.get(), POLLIN, 0}};
}

void WorkerProcess::on_ready(std::span<const pollfd> ready) {
  if (ready.front().revents == 0 || !running_) return;
  const bool more = reader_->lines.read(reports_.get());
  while (const auto line = reader_->lines.next()) {
    if (const auto object = parse(*line)) events_.push_back(event_from(*object));
  }
  if (!more) on_end();
}

// Commands are few and short: the pipe is never full.
void WorkerProcess::send(const std::string& line) {
  const std::string bytes = line + "\n";
  static_cast<void>(!::write(commands_.get(), bytes.data(), bytes.size()));
}

void WorkerProcess::on_end() {
  if (!std::exchange(running_, false)) return;
  reports_.reset();
  events_.push_back({.kind = WorkerEvent::Kind::kEnded, .detail = name_ + "'s process has ended"});
}

}  // namespace pawl::drill
