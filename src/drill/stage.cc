#include "drill/stage.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "base/version.h"
#include "client/boot_clock.h"
#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kSetUp{30'000};   // to start a process, to reach a database
constexpr milliseconds kAnswer{30'000};  // of a write
constexpr milliseconds kTick{100};       // how often setting.wait is called

std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string to_list(const std::vector<client::Address>& addresses) {
  std::string list;
  for (const client::Address& each : addresses)
    list += (list.empty() ? "" : ",") + client::to_text(each);
  return list;
}

}  // namespace

Stage::Stage(Setting setting) : setting_(std::move(setting)), began_(client::boot_now()) {
  record_.drill = setting_.drill;
  record_.lock = setting_.lock;
  record_.guard = setting_.target.kind;
  const guard::Kind* kind = guard::find_kind(record_.guard);
  record_.guard_title = kind == nullptr ? record_.guard : std::string(kind->title);
  record_.resource = setting_.target.resource;
  record_.mode = setting_.mode;
  record_.scratch = setting_.target.scratch;
  record_.pawld = to_list(setting_.pawld);
  record_.version = kVersion;
  record_.began = wall_time();
  record_.ttl = setting_.ttl;
}

Stage::~Stage() = default;

Moment Stage::now() const {
  return moment(client::boot_now());
}

Moment Stage::moment(client::Instant at) const {
  return at - began_;
}

// --- pawld ---------------------------------------------------------------------------------------

ThrowawayPawld& Stage::use_throwaway_pawld() {
  PAWL_ASSERT(roles_.empty() && throwaway_ == nullptr);
  throwaway_ = need(ThrowawayPawld::open(need(find_pawld())));
  throwaway_address_ = {throwaway_->address()};
  record_.pawld = "throw-away";
  say("pawld", "a pawld of the drill's own serves");
  return *throwaway_;
}

const std::vector<client::Address>& Stage::pawld() const {
  return throwaway_ ? throwaway_address_ : setting_.pawld;
}

void Stage::kill_pawld() {
  PAWL_ASSERT(throwaway_ != nullptr);
  throwaway_->kill();
  fault(FaultKind::kKilled, "pawld");
  say("pawld", "is killed (kill -9)");
}

void Stage::start_pawld(Process::Clocks clocks) {
  need(throwaway_->start(clocks));
  end_fault(FaultKind::kKilled, "pawld");
  const auto step =
      std::chrono::duration_cast<std::chrono::hours>(clocks - std::exchange(clocks_, clocks))
          .count();
  if (step == 0) {
    fault(FaultKind::kRestarted, "pawld").until = now();
    return say("pawld", "is started again");
  }
  const std::string note =
      fmt::format("its clocks have gone {} h {}", std::abs(step), step > 0 ? "ahead" : "back");
  fault(FaultKind::kClockStepped, "pawld", note).until = now();
  say("pawld", "is started again, and " + note);
}

void Stage::back_up_pawld() {
  need(throwaway_->back_up());
  say("pawld", "is backed up");
}

void Stage::restore_pawld() {
  need(throwaway_->restore());
  fault(FaultKind::kRestored, "pawld").until = now();
  say("pawld", "has lost its data, and is restored from the backup");
}

// --- actors --------------------------------------------------------------------------------------

Actor& Stage::enter(const std::string& name, Through through) {
  if (observer_ == nullptr) {
    observer_ = need(Observer::open(pawld(), setting_.auth, setting_.lock));
    until("pawld to tell of the lock", kSetUp,
          [&] { return observer_->began() || !observer_->refusal().empty(); });
    if (!observer_->began()) throw Impossible{{Code::kUnavailable, observer_->refusal()}};
  }
  auto role = std::make_unique<Role>();
  if (through == Through::kProxy) role->proxy = need(Proxy::open(pawld()));
  role->actor = need(Actor::start(options_for(*role, name)));
  roles_.push_back(std::move(role));
  await_ready(*roles_.back(), name);
  return *roles_.back()->actor;
}

ActorOptions Stage::options_for(const Role& role, const std::string& name) const {
  ActorOptions options{setting_.program, name,         to_list(pawld()),
                       setting_.auth,    setting_.tls, setting_.target};
  if (role.proxy == nullptr) return options;
  options.pawld = role.proxy->address();
  if (!pawld().front().tls) return options;
  options.pawld = "tls://" + options.pawld;
  if (options.tls.server_name.empty()) options.tls.server_name = pawld().front().host;
  return options;
}

void Stage::await_ready(Role& role, const std::string& name) {
  role.ready = false;
  until(name + " to be ready", kSetUp, [&] { return role.ready || role.trouble; });
  if (role.trouble)
    throw Impossible{{role.trouble->code, fmt::format("{}: {}", name, role.trouble->detail)}};
}

Stage::Role& Stage::part_of(const Actor& actor) {
  return const_cast<Role&>(std::as_const(*this).part_of(actor));
}

const Stage::Role& Stage::part_of(const Actor& actor) const {
  const auto found = std::find_if(roles_.begin(), roles_.end(),
                                  [&](const auto& role) { return role->actor.get() == &actor; });
  PAWL_ASSERT(found != roles_.end());
  return **found;
}

std::uint64_t Stage::acquire(Actor& actor) {
  queue(actor);
  return granted(actor);
}

void Stage::queue(Actor& actor) {
  Role& role = part_of(actor);
  role.waits = true;
  role.trouble.reset();
  actor.acquire(setting_.lock, setting_.ttl, handover());
}

std::uint64_t Stage::granted(Actor& actor) {
  Role& role = part_of(actor);
  until(actor.name() + " to be granted the lock", handover() + kAnswer,
        [&] { return !role.waits || role.trouble; });
  if (role.trouble) throw Impossible{*role.trouble};
  fence_on_grant(actor);
  return role.token;
}

void Stage::fence_on_grant(Actor& actor) {
  if (!setting_.target.scratch) advance(actor);
}

Actor& Stage::first_granted(const std::vector<Actor*>& actors) {
  Actor* first = nullptr;
  until("the lock to change hands", handover() + kAnswer, [&] {
    for (Actor* each : actors) {
      if (part_of(*each).trouble) throw Impossible{*part_of(*each).trouble};
      if (!part_of(*each).waits) first = each;
    }
    return first != nullptr;
  });
  fence_on_grant(*first);
  return *first;
}

milliseconds Stage::handover() const {
  return 3 * setting_.ttl + setting_.patience;
}

void Stage::knows_loss(Actor& actor) {
  const Role& role = part_of(actor);
  until(actor.name() + " to know that the lease is over", handover(),
        [&] { return !role.believes; });
}

void Stage::release(Actor& actor) {
  const Role& role = part_of(actor);
  if (!role.believes) return;
  actor.release();
  until(actor.name() + " to give the lock back", kAnswer, [&] { return !role.believes; });
}

void Stage::advance(Actor& actor) {
  if (!setting_.target.guarded) return;
  Role& role = part_of(actor);
  if (role.advanced_to == role.token) return;
  if (setting_.before_advance) {
    if (auto refusal = setting_.before_advance(role.token)) throw Impossible{*std::move(refusal)};
  }
  role.trouble.reset();
  actor.advance(role.token, kAnswer);
  until(actor.name() + " to advance the fence", kAnswer + kAnswer,
        [&] { return role.advanced_to == role.token || role.trouble; });
  if (role.trouble) throw Impossible{*role.trouble};
  say(actor.name(), fmt::format("has advanced the fence to {}", role.token));
}

// --- writes --------------------------------------------------------------------------------------

std::size_t Stage::send(Actor& actor, std::uint64_t token, Manner manner, std::string value) {
  const std::size_t id = record_.writes.size();
  if (value.empty()) value = fmt::format("{}{}", actor.name(), id + 1);
  Write write{.actor = actor.name(), .token = token, .value = std::move(value)};
  write.sent = now();
  part_of(actor).trouble.reset();
  actor.write(id + 1, token, write.value, manner);
  record_.writes.push_back(std::move(write));
  return id;
}

const Write& Stage::answered(std::size_t write) {
  const Role* role = nullptr;
  for (const auto& each : roles_) {
    if (each->actor->name() == record_.writes.at(write).actor) role = each.get();
  }
  PAWL_ASSERT(role != nullptr);
  until(fmt::format("an answer to {}'s write", record_.writes[write].actor), kAnswer,
        [&] { return record_.writes[write].answered != Moment{} || role->trouble; });
  if (role->trouble) throw Impossible{*role->trouble};
  return record_.writes[write];
}

// --- faults --------------------------------------------------------------------------------------

void Stage::freeze(Actor& actor) {
  actor.freeze();
  fault(FaultKind::kFrozen, actor.name());
  say(actor.name(), "is frozen (SIGSTOP)");
}

void Stage::wake(Actor& actor) {
  end_fault(FaultKind::kFrozen, actor.name());
  say(actor.name(), "is woken (SIGCONT)");
  actor.wake();
}

void Stage::kill(Actor& actor) {
  Role& role = part_of(actor);
  actor.kill();
  end_belief(role, client::boot_now());
  fault(FaultKind::kKilled, actor.name());
  say(actor.name(), "is killed (kill -9)");
}

void Stage::revive(Actor& actor) {
  Role& role = part_of(actor);
  const std::string name = actor.name();
  role.trouble.reset();
  role.waits = false;
  // In place: whoever has a reference to the actor keeps it.
  auto next = need(Actor::start(options_for(role, name)));
  actor.take_over(*next);
  await_ready(role, name);
  end_fault(FaultKind::kKilled, name);
  say(name, fmt::format("is started again, and still knows its token {}", role.token));
}

void Stage::delay(Actor& actor) {
  fault(FaultKind::kDelayed, actor.name(), "a write of it is on its way");
  say(actor.name(),
      "sends a write that is held up on its way, and gives up waiting for the answer");
}

void Stage::arrive(Actor& actor) {
  end_fault(FaultKind::kDelayed, actor.name());
  say(actor.name(), "the write that was held up arrives");
}

void Stage::cut(Actor& actor, Cut cut) {
  const Role& role = part_of(actor);
  PAWL_ASSERT(role.proxy != nullptr && cut != Cut::kNone);
  role.proxy->cut(cut);
  const char* const note = cut == Cut::kBoth      ? "nothing passes between it and pawld"
                           : cut == Cut::kToPawld ? "nothing passes from it to pawld"
                                                  : "nothing passes from pawld to it";
  fault(FaultKind::kCut, actor.name(), note);
  say(actor.name(), fmt::format("is cut off: {}", note));
}

void Stage::mend(Actor& actor) {
  part_of(actor).proxy->cut(Cut::kNone);
  end_fault(FaultKind::kCut, actor.name());
  say(actor.name(), "can reach pawld again");
}

Fault& Stage::fault(FaultKind kind, const std::string& whom, std::string note) {
  record_.faults.push_back({kind, whom, now(), {}, std::move(note)});
  return record_.faults.back();
}

void Stage::end_fault(FaultKind kind, const std::string& whom) {
  for (Fault& each : record_.faults) {
    if (each.kind == kind && each.whom == whom && !each.until) each.until = now();
  }
}

// --- the loop ------------------------------------------------------------------------------------

void Stage::say(std::string_view who, std::string text) {
  record_.lines.push_back({now(), std::string(who), std::move(text)});
  if (setting_.tell) setting_.tell(record_.lines.back());
}

void Stage::until(std::string_view what, milliseconds limit, const std::function<bool()>& holds) {
  const client::Instant from = client::boot_now();
  while (!holds()) {
    const client::Instant at = client::boot_now();
    if (at > from + limit) {
      throw Impossible{
          {Code::kUnavailable, fmt::format("waited in vain for {}, {:.0f} s", what,
                                           std::chrono::duration<double>(limit).count())}};
    }
    if (setting_.wait) setting_.wait(what, at - from);
    turn(std::min(from + limit + 1ms, at + kTick));
  }
}

void Stage::pass(milliseconds time) {
  const client::Instant end = client::boot_now() + time;
  while (client::boot_now() < end) turn(end);
}

void Stage::turn(client::Instant limit) {
  std::vector<Part*> parts;
  if (observer_) parts.push_back(observer_.get());
  for (const auto& role : roles_) {
    if (role->proxy) parts.push_back(role->proxy.get());
    if (role->actor->lives()) parts.push_back(role->actor.get());
  }
  std::vector<pollfd> wanted{{setting_.stop, POLLIN, 0}};
  std::vector<std::size_t> begins;
  for (const Part* part : parts) {
    begins.push_back(wanted.size());
    for (const pollfd& each : part->interest()) wanted.push_back(each);
    limit = std::min(limit, part->timer());
  }
  begins.push_back(wanted.size());
  const auto left = std::chrono::ceil<milliseconds>(limit - client::boot_now());
  if (::poll(wanted.data(), wanted.size(), static_cast<int>(std::max(left, 0ms).count())) < 0)
    return;
  if (wanted.front().revents != 0) throw Interrupted{};
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i]->turn(std::span(wanted).subspan(begins[i], begins[i + 1] - begins[i]));
  if (observer_) {
    for (const wire::EventPush& event : observer_->take_events()) hear(event);
  }
  for (const auto& role : roles_) {
    for (const Telling& told : role->actor->take_tellings()) hear(*role, told);
  }
}

}  // namespace pawl::drill
