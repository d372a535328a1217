#include "drill/actor.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "drill/messages.h"

namespace pawl::drill {
namespace {

constexpr int kFarewellMs = 2'000;

client::Instant instant(const json::object& line, const char* key) {
  return client::Instant(Nanos(static_cast<std::int64_t>(number(line, key))));
}

LeaseState state_from(std::string_view word) {
  for (const LeaseState state : {LeaseState::kHeld, LeaseState::kAtRisk, LeaseState::kUncertain}) {
    if (to_text(state) == word) return state;
  }
  return LeaseState::kLost;
}

std::optional<Telling::Kind> kind_from(std::string_view word) {
  struct Known {
    std::string_view word;
    Telling::Kind kind;
  };
  using enum Telling::Kind;
  static constexpr std::array kKnown{
      Known{"ready", kReady},       Known{"failed", kFailed},
      Known{"granted", kGranted},   Known{"not_granted", kNotGranted},
      Known{"released", kReleased}, Known{"advanced", kAdvanced},
      Known{"written", kWritten},   Known{"withheld", kWithheld},
      Known{"lease", kLease}};
  for (const Known& known : kKnown) {
    if (known.word == word) return known.kind;
  }
  return std::nullopt;
}

Telling telling_from(const json::object& line) {
  const auto kind = kind_from(text(line, "is"));
  Telling told{.kind = kind.value_or(Telling::Kind::kFailed)};
  told.at = instant(line, line.contains("answered") ? "answered" : "at");
  told.sent = instant(line, "sent");
  told.id = number(line, "id");
  told.token = number(line, "token");
  told.code = static_cast<Code>(number(line, "code"));
  told.state = state_from(text(line, "state"));
  told.detail = text(line, kind == Telling::Kind::kLease ? "reason" : "detail");
  told.outcome = {guard::parse_answer(text(line, "answer")).value_or(guard::Answer::kBroken),
                  flag(line, "let_through"), told.detail};
  return told;
}

json::object order_of(const char* word) {
  return {{"do", word}};
}

}  // namespace

struct Actor::Reader {
  Lines lines;
};

Result<std::unique_ptr<Actor>> Actor::start(const ActorOptions& options) {
  auto in = make_pipe();
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto process = Process::start({options.program, "drill-worker"},
                                {.in = in->read.get(), .out = out->write.get()});
  if (!process) return process.error();
  std::unique_ptr<Actor> actor(
      new Actor(options.name, *std::move(process), std::move(in->write), std::move(out->read)));
  json::object order = order_of("prepare");
  order["name"] = options.name;
  order["addresses"] = options.pawld;
  order["user"] = options.auth.user;
  order["secret"] = options.auth.secret;
  order["tls"] = to_json(options.tls);
  order["target"] = to_json(options.target);
  actor->order(json::serialize(order));
  return actor;
}

Actor::Actor(std::string name, Process process, UniqueFd orders, UniqueFd tells)
    : name_(std::move(name)),
      process_(std::move(process)),
      orders_(std::move(orders)),
      tells_(std::move(tells)),
      reader_(std::make_unique<Reader>()) {}

Actor::~Actor() {
  orders_.reset();
  if (!lives_ || frozen_) return;  // process_ kills it.
  // Its stdout closes when it ends; what it still says is of no use.
  pollfd end{tells_.get(), POLLIN, 0};
  while (::poll(&end, 1, kFarewellMs) > 0 && reader_->lines.read(tells_.get())) {
  }
}

void Actor::acquire(const std::string& lock, std::chrono::milliseconds ttl,
                    std::chrono::milliseconds wait) {
  json::object order = order_of("acquire");
  order["lock"] = lock;
  order["ttl_ms"] = ttl.count();
  order["wait_ms"] = wait.count();
  this->order(json::serialize(order));
}

void Actor::release() {
  order(json::serialize(order_of("release")));
}

void Actor::advance(std::uint64_t token, std::chrono::milliseconds wait) {
  json::object order = order_of("advance");
  order["token"] = token;
  order["wait_ms"] = wait.count();
  this->order(json::serialize(order));
}

void Actor::write(std::uint64_t id, std::uint64_t token, const std::string& value, Manner manner) {
  json::object order = order_of("write");
  order["id"] = id;
  order["token"] = token;
  order["value"] = value;
  order["asks"] = manner == Manner::kAsks;
  this->order(json::serialize(order));
}

void Actor::freeze() {
  process_.freeze();
  frozen_ = true;
}

void Actor::wake() {
  process_.wake();
  frozen_ = false;
}

void Actor::kill() {
  process_.kill();
  frozen_ = false;
  end();
}

void Actor::take_over(Actor& other) {
  process_ = std::move(other.process_);
  orders_ = std::move(other.orders_);
  tells_ = std::move(other.tells_);
  reader_ = std::move(other.reader_);
  tellings_.clear();
  frozen_ = false;
  lives_ = std::exchange(other.lives_, false);
}

std::vector<pollfd> Actor::interest() const {
  return {{tells_.get(), POLLIN, 0}};
}

void Actor::turn(std::span<const pollfd> ready) {
  if (ready.front().revents == 0 || !lives_) return;
  const bool more = reader_->lines.read(tells_.get());
  while (const auto line = reader_->lines.next()) {
    if (const auto object = parse(*line)) tellings_.push_back(telling_from(*object));
  }
  if (!more) end();
}

// A pipe that is full would mean orders that nobody reads for long: there are never so many.
void Actor::order(const std::string& line) {
  const std::string bytes = line + "\n";
  static_cast<void>(!::write(orders_.get(), bytes.data(), bytes.size()));
}

void Actor::end() {
  if (!std::exchange(lives_, false)) return;
  tells_.reset();
  tellings_.push_back({.kind = Telling::Kind::kEnded, .detail = name_ + "'s process has ended"});
}

}  // namespace pawl::drill
