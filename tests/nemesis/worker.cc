#include "nemesis/worker.h"

#include <time.h>

#include <cstdlib>

namespace pawl::nemesis {
namespace {

using std::chrono::milliseconds;

const char* word(Sharing sharing) {
  switch (sharing) {
    case Sharing::kShared:
      return "shared";
    case Sharing::kLimit:
      return "limit";
    default:
      return "exclusive";
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& each : words) all += (all.empty() ? "" : " ") + each;
  return all;
}

void pause_for(milliseconds span) {
  const timespec wanted{span.count() / 1'000, span.count() % 1'000 * 1'000'000};
  ::nanosleep(&wanted, nullptr);
}

ClientOptions options_of(const Settings& settings) {
  ClientOptions options;
  options.name = settings.name;
  const auto colon = settings.auth.find(':');
  if (colon != std::string::npos)
    options.auth = {settings.auth.substr(0, colon), settings.auth.substr(colon + 1)};
  options.tls.ca_file = settings.ca_file;
  options.connect_timeout = milliseconds(500);
  options.call_timeout = milliseconds(1'500);
  return options;
}

}  // namespace

Worker::Worker(const Settings& settings, EventLog& log)
    : settings_(settings),
      log_(log),
      dice_(settings.seed),
      client_(settings.address, options_of(settings)),
      resource_(settings.guard, [&log] { return log.now(); }) {}

Worker::Wish Worker::wish() {
  Wish wish;
  wish.options.owner = settings_.name;
  const std::uint64_t half = static_cast<std::uint64_t>(settings_.ttl_ms) / 2;
  wish.options.ttl = milliseconds(half + dice_.below(half));
  wish.options.wait =
      wish.options.ttl * static_cast<int>(dice_.below(4));  // One in four does not wait.
  wish.locks = {kLocks[dice_.below(kLocks.size())]};
  const auto kind = dice_.below(100);
  if (kind < 15) {
    wish.options.sharing = Sharing::kShared;
  } else if (kind < 25) {
    wish.options.sharing = Sharing::kLimit;
    wish.options.limit = kPoolSize;
    wish.locks = {kPool};
  } else if (kind < 40) {
    const std::string& second = kLocks[dice_.below(kLocks.size())];
    if (second != wish.locks[0]) wish.locks.push_back(second);
  }
  if (chance(10)) wish.options.delay = milliseconds(100 + dice_.below(400));
  wish.fence = wish.options.sharing == Sharing::kExclusive && chance(75);
  if (wish.fence && resource_.guard() != nullptr) {
    wish.options.guards = {GuardedResource(resource_.guard())};
    wish.options.guard_wait = milliseconds(1'500);
  }
  return wish;
}

void Worker::announce(std::uint64_t number, const Wish& wish) {
  log_.say("ask", {{"n", number},
                   {"locks", joined(wish.locks)},
                   {"mode", word(wish.options.sharing)},
                   {"limit", std::uint64_t{wish.options.limit}},
                   {"ttl", std::int64_t{wish.options.ttl.count()}},
                   {"delay", std::int64_t{wish.options.delay.count()}}});
}

void Worker::turn() {
  const std::uint64_t number = ++turns_;
  const Wish wanted = wish();
  announce(number, wanted);
  Result<Lease> lease = client_.acquire_all(wanted.locks, wanted.options);
  if (!lease) {
    log_.say("ended", {{"n", number},
                       {"code", static_cast<int>(lease.error().code)},
                       {"detail", lease.error().detail}});
    return think(30);
  }
  hold(*lease, number, wanted);
  think(30);
}

void Worker::hold(Lease& lease, std::uint64_t number, const Wish& wish) {
  Held held{number, lease, wish.locks};
  held.deadline = log_.from_own_clock(lease.deadline_boottime().count());
  log_.say("granted", {{"n", number},
                       {"token", lease.token()},
                       {"floor", lease.floor()},
                       {"slot", lease.slot() ? static_cast<int>(*lease.slot()) : -1},
                       {"deadline", held.deadline},
                       {"fenced", !wish.options.guards.empty()}});
  const bool reader = wish.options.sharing == Sharing::kShared;
  if (lease.slot()) held.resources = {std::string(kPool) + "_" + std::to_string(*lease.slot())};
  if (wish.fence && wish.options.guards.empty()) {
    for (const std::string& resource : held.resources) {
      if (resource_.advance(resource, lease.token()).outcome == Outcome::kAdmitted)
        log_.say("fenced", {{"n", number}, {"resource", resource}, {"token", lease.token()}});
    }
  }
  // Some hold for several TTLs, most for a moment.
  const auto steps = chance(35) ? 10 + dice_.below(70) : 1 + dice_.below(6);
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (!still_held(held)) {
      if (!reader && chance(60)) write_all_the_same(held);
      break;
    }
    reader ? read(held) : step(held);
  }
  give_back(held);
}

bool Worker::still_held(Held& held) {
  const Result<void> check = held.lease.check();
  const std::int64_t deadline = log_.from_own_clock(held.lease.deadline_boottime().count());
  if (!check) {
    log_.say("lost", {{"n", held.number},
                      {"deadline", deadline},
                      {"over", held.lease.state() == LeaseState::kLost},
                      {"reason", held.lease.reason()}});
    return false;
  }
  if (deadline != held.deadline) log_.say("held", {{"n", held.number}, {"deadline", deadline}});
  held.deadline = deadline;
  return true;
}

void Worker::step(Held& held) {
  think(60);  // Between the check and the write.
  write(held, held.resources[dice_.below(held.resources.size())], false);
  if (chance(10)) {
    --held.op;
    write(held, held.resources[0], false);  // The same operation again: of one resource, a replay.
  }
}

void Worker::write_all_the_same(Held& held) {
  think(settings_.ttl_ms / 2);  // Most often another client holds it by now.
  write(held, held.resources[dice_.below(held.resources.size())], true);
}

void Worker::read(Held& held) {
  think(60);
  const Answer answer = resource_.check(held.resources[0], held.lease.floor());
  log_.say("checked", {{"n", held.number},
                       {"resource", held.resources[0]},
                       {"token", held.lease.floor()},
                       {"outcome", to_text(answer.outcome)},
                       {"detail", answer.detail}});
}

void Worker::write(Held& held, const std::string& resource, bool unasked) {
  const Row row{resource, held.lease.token(), ++held.op, settings_.name};
  const Answer answer = resource_.write(row, unasked || chance(50) ? nullptr : &held.lease);
  log_.say("wrote", {{"n", held.number},
                     {"resource", resource},
                     {"token", row.token},
                     {"op", row.op},
                     {"outcome", to_text(answer.outcome)},
                     {"unasked", unasked},
                     {"detail", answer.detail}});
}

void Worker::give_back(Held& held) {
  log_.say("releasing", {{"n", held.number}});
  const Result<void> released = held.lease.release(milliseconds(700));
  if (released || released.error().code == Code::kLeaseLost)
    log_.say("released", {{"n", held.number}, {"live", released.has_value()}});
}

void Worker::think(int at_most_ms) {
  pause_for(milliseconds(dice_.below(static_cast<std::uint64_t>(at_most_ms)) + 1));
}

void work_under_run(const Settings& settings, EventLog& log) {
  const std::uint64_t token = std::strtoull(std::getenv("PAWL_TOKEN"), nullptr, 10);
  const std::int64_t deadline = std::strtoll(std::getenv("PAWL_DEADLINE_BOOTTIME_NS"), nullptr, 10);
  const std::string lock = std::getenv("PAWL_LOCK");
  log.say("granted", {{"n", 1},
                      {"token", token},
                      {"floor", token},
                      {"slot", -1},
                      {"deadline", log.from_own_clock(deadline)},
                      {"fenced", false}});
  SeededRandom dice(settings.seed);
  Resource resource(settings.guard, [&log] { return log.now(); });
  const std::uint64_t steps = 1 + dice.below(20);
  for (std::uint64_t op = 1; op <= steps; ++op) {
    pause_for(milliseconds(1 + dice.below(100)));
    const Answer answer = resource.write({lock, token, op, settings.name}, nullptr);
    log.say("wrote", {{"n", 1},
                      {"resource", lock},
                      {"token", token},
                      {"op", op},
                      {"outcome", to_text(answer.outcome)},
                      {"unasked", false},
                      {"detail", answer.detail}});
    if (answer.outcome == Outcome::kStale) break;
  }
  log.say("releasing", {{"n", 1}});  // pawl run does, once this has ended.
}

}  // namespace pawl::nemesis
