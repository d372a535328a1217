#include "drill/demo.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/random.h"
#include "client/blocking_connection.h"
#include "client/boot_clock.h"
#include "drill/demo_row.h"
#include "drill/scenario.h"
#include "drill/scratch.h"
#include "drill/throwaway_pawld.h"
#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Tone = DemoEvent::Tone;

constexpr const char* kLock = "stock/widgets";
constexpr milliseconds kRefresh{100};      // between two updates of the view
constexpr std::size_t kExtraLetters = 20;  // added to each line when its reading time is computed
constexpr int kBefore = 10, kDelivered = 5, kSold = 3;

std::string widgets(int count) {
  return fmt::format("{} widgets", count);
}

// Asks pawld who holds the lock.
class HolderQuery {
 public:
  explicit HolderQuery(const client::Address& pawld) : pawld_({pawld}, random_, {}) {}

  void update(DemoStatus& status) {
    const auto reply = pawld_.command({.words = {"INSPECT", kLock}});
    status.holder.clear();
    if (!reply) return;
    const wire::Value* holders = reply->find("holders");
    if (holders == nullptr || holders->items.empty()) return;
    const wire::Value& holder = holders->items.front();
    if (const auto* owner = holder.find("owner")) {
      status.holder = owner->text.substr(owner->text.rfind(' ') + 1);
    }
    if (const auto* token = holder.find("token"))
      status.token = static_cast<std::uint64_t>(token->integer);
    if (const auto* left = holder.find("expires_in_ms")) status.left = milliseconds(left->integer);
  }

 private:
  SystemRandom random_;
  client::BlockingConnection pawld_;
};

class Demo {
 public:
  Demo(const DemoConfig& config, DemoView& view, DemoRow& row, const client::Address& pawld)
      : config_(config),
        view_(view),
        row_(row),
        pawld_(pawld),
        holder_query_(pawld),
        began_(client::boot_now()) {
    status_.ttl = config_.drill.ttl;
  }

  struct RunResult {
    std::string row;  // its final content
    Fate late_write = Fate::kUnknown;
    bool refused_every_way = false;
  };

  RunResult run(bool guarded) {
    guarded_ = status_.guarded = guarded;
    Scenario scenario("demo", scenario_config());
    scenario_ = &scenario;
    RunResult result = run_steps(scenario);
    scenario_ = nullptr;
    return result;
  }

  void report(DemoEvent event) {
    event.guarded = guarded_;
    event.row = read();
    event.at = std::chrono::duration_cast<milliseconds>(client::boot_now() - began_);
    status_.row = event.row;
    view_.on_event(event);
    if (event.tone != Tone::kHeading)
      pause_for_reading(config_.per_letter *
                        static_cast<std::int64_t>(event.text.size() + kExtraLetters));
  }

 private:
  DrillConfig scenario_config() {
    DrillConfig made;
    made.program = config_.drill.program;
    made.pawld = {pawld_};
    made.lock = kLock;
    made.ttl = config_.drill.ttl;
    made.target = row_.target();
    made.mode = guarded_ ? "enforce" : std::string(kUnguarded);
    made.stop_fd = config_.drill.stop_fd;
    made.on_wait = [this](std::string_view, Moment) { refresh_view(); };
    return made;
  }

  RunResult run_steps(Scenario& scenario) {
    status_.a = status_.b = "starting";
    WorkerProcess& a = scenario.start_worker("A");
    WorkerProcess& b = scenario.start_worker("B");
    status_.a = status_.b = "ready";
    const std::uint64_t first = freeze_holder(scenario, a);
    const std::uint64_t second = let_next_holder_write(scenario, b);
    const Fate fate = resume_former_holder(scenario, a, first, second);
    const bool refused = guarded_ && write_in_every_way(scenario, a, first);
    if (fate == Fate::kRefused) start_over(scenario, a, b);
    RunResult result{read(), fate, refused};
    status_.a = status_.b = "done";
    static_cast<void>(scenario.finish());
    return result;
  }

  // A has read the row, has computed what to write and has checked its lease. Then it is frozen.
  std::uint64_t freeze_holder(Scenario& scenario, WorkerProcess& a) {
    const std::uint64_t token = scenario.acquire(a);
    status_.a = "holds the lock";
    report({.event = "granted",
            .worker = "A",
            .token = token,
            .text = guarded_ ? fmt::format("gets the lock, with token {}.", token)
                             : fmt::format("gets the lock: a lease of {:g} s, which it keeps "
                                           "renewing, and a number, the token: "
                                           "{}.",
                                           seconds(config_.drill.ttl), token)});
    status_.a = "about to write " + widgets(kBefore + kDelivered);
    report({.event = "read",
            .worker = "A",
            .token = token,
            .text = fmt::format("reads {}. {} more were delivered, so it is about to write {}.",
                                read(), kDelivered, widgets(kBefore + kDelivered))});
    scenario.freeze(a);
    status_.a = "frozen; believes it holds the lock";
    report({.event = "frozen",
            .worker = "A",
            .token = token,
            .text = guarded_ ? "is frozen at this point."
                             : "is frozen at this point (SIGSTOP), as by a garbage collection, by "
                               "swapping or by a "
                               "paused virtual machine. Nobody renews its lease now.",
            .tone = Tone::kBad});
    return token;
  }

  std::uint64_t let_next_holder_write(Scenario& scenario, WorkerProcess& b) {
    scenario.request_lock(b);
    status_.b = "waits for the lock";
    report({.event = "waits",
            .worker = "B",
            .text = "requests the lock, and waits until A's lease has expired."});
    const std::uint64_t token = scenario.await_grant(b);
    status_.b = "holds the lock";
    report({.event = "granted",
            .worker = "B",
            .token = token,
            .text = fmt::format(
                "gets the lock, because A's lease has expired. Its token is greater: {}.", token)});
    scenario.advance(b);  // as every new holder should before it reads
    const std::string value = widgets(kBefore - kSold);
    report({.event = "read",
            .worker = "B",
            .token = token,
            .text = fmt::format("reads {} and sells {}.", read(), kSold)});
    write(scenario, b, token, value);
    report({.event = "written",
            .worker = "B",
            .token = token,
            .text = fmt::format("writes {}.", value),
            .tone = Tone::kGood});
    return token;
  }

  // The write is the first thing that A does: it checked its lease before it was frozen.
  Fate resume_former_holder(Scenario& scenario, WorkerProcess& a, std::uint64_t first,
                            std::uint64_t second) {
    const std::string value = widgets(kBefore + kDelivered);
    report(
        {.event = "wakes",
         .worker = "A",
         .token = first,
         .text =
             guarded_
                 ? fmt::format("is resumed, and writes {}.", value)
                 : fmt::format(
                       "is resumed. It does not know that time has passed, so it does what it was "
                       "about to do: it writes {}.",
                       value)});
    const std::size_t late = scenario.send_write(a, first, LeaseCheck::kSkip, value);
    scenario.resume(a);
    const Write wrote = scenario.await_result(late);
    if (wrote.fate != Fate::kRefused && wrote.fate != Fate::kLetThrough) {
      throw DrillAborted{
          {Code::kUnknown, "the result of A's late write is unknown: " + wrote.detail}};
    }
    scenario.await_loss_noticed(a);
    if (wrote.fate == Fate::kRefused) {
      status_.a = "was refused, and knows why";
      report(
          {.event = "refused",
           .worker = "A",
           .token = first,
           .text = fmt::format(
               "is REFUSED by the database: token {} is older than {}, which it has seen. B's sale "
               "is still there, and A got an error: it can start over.",
               first, second),
           .tone = Tone::kGood});
    } else {
      status_.a = "learned too late that its lease was over";
      report(
          {.event = "written",
           .worker = "A",
           .token = first,
           .text = fmt::format(
               "has overwritten what B wrote: there should be {} now. B's sale is LOST, and nobody "
               "got an error.",
               widgets(kBefore - kSold + kDelivered)),
           .tone = Tone::kBad});
    }
    return wrote.fate;
  }

  // As a program does that ignores the error, or has never heard of tokens. Whether each of these
  // writes was refused, too; each is rolled back.
  bool write_in_every_way(Scenario& scenario, WorkerProcess& a, std::uint64_t token) {
    scenario.try_ways(a, token);
    bool all = true;
    for (const TriedWay& each : scenario.record().ways) {
      if (each.way == Way::kCall || each.fate == WayFate::kNotApplicable) continue;
      const bool refused = each.fate == WayFate::kRefused;
      all = all && refused;
      report(
          {.event = "retried",
           .worker = "A",
           .token = each.way == Way::kNone ? 0 : token,
           .text =
               each.way == Way::kNone
                   ? fmt::format("writes it without any token: {}.",
                                 refused ? "REFUSED, because the guard requires one" : "it LANDS")
                   : fmt::format("writes it all the same ({}): {}.", each.words,
                                 refused ? "REFUSED again, by the table itself" : "it LANDS"),
           .tone = refused ? Tone::kGood : Tone::kBad});
    }
    return all;
  }

  // What a program should do after the error.
  void start_over(Scenario& scenario, WorkerProcess& a, WorkerProcess& b) {
    scenario.release(b);
    status_.b = "done";
    const std::uint64_t token = scenario.acquire(a);
    status_.a = "holds the lock";
    scenario.advance(a);
    const std::string found = read();
    const std::string value = widgets(kBefore - kSold + kDelivered);
    write(scenario, a, token, value);
    report({.event = "written",
            .worker = "A",
            .token = token,
            .text = fmt::format(
                "gets the lock again, with token {}, reads {} and writes {}, which is correct.",
                token, found, value),
            .tone = Tone::kGood});
  }

  static void write(Scenario& scenario, WorkerProcess& worker, std::uint64_t token,
                    const std::string& value) {
    const Write& wrote =
        scenario.await_result(scenario.send_write(worker, token, LeaseCheck::kSkip, value));
    if (wrote.fate == Fate::kAdmitted) return;
    throw DrillAborted{
        {Code::kUnknown, fmt::format("{} could not write: {}", worker.name(), wrote.detail)}};
  }

  static double seconds(milliseconds span) { return std::chrono::duration<double>(span).count(); }

  std::string read() {
    const DemoRow::Content content = need(row_.read());
    status_.row_token = content.token;
    return content.value;
  }

  void refresh_view() {
    if (client::boot_now() < refreshed_ + kRefresh) return;
    refreshed_ = client::boot_now();
    holder_query_.update(status_);
    view_.show(status_);
  }

  // Time to read a line; workers are served meanwhile.
  void pause_for_reading(milliseconds time) {
    if (scenario_ == nullptr) return pause_between_runs(time);
    const client::Instant end = client::boot_now() + time;
    refresh_view();
    while (client::boot_now() < end) {
      scenario_->run_for(std::min<milliseconds>(
          kRefresh, std::chrono::ceil<milliseconds>(end - client::boot_now())));
      refresh_view();
    }
  }

  void pause_between_runs(milliseconds time) const {
    pollfd stop{config_.drill.stop_fd, POLLIN, 0};
    if (::poll(&stop, 1, static_cast<int>(time.count())) > 0) throw DrillInterrupted{};
  }

  const DemoConfig& config_;
  DemoView& view_;
  DemoRow& row_;
  const client::Address pawld_;
  HolderQuery holder_query_;
  const client::Instant began_;
  client::Instant refreshed_{};
  Scenario* scenario_ = nullptr;
  bool guarded_ = false;
  DemoStatus status_;
};

DemoResult run(const DemoConfig& config, DemoView& view) {
  std::optional<ScratchDatabase> scratch;
  const Target& target = config.drill.target;
  const guard::Kind* kind = need(guard::need_kind(target.kind));
  if (kind->create != nullptr) scratch.emplace(need(ScratchDatabase::make(*kind)));
  const auto row = need(DemoRow::make(target.kind, scratch ? scratch->path() : target.where));
  const auto pawld = need(ThrowawayPawld::open(need(find_pawld())));
  Demo demo(config, view, *row, pawld->address());
  DemoResult result;
  need(row->reset(widgets(kBefore)));
  demo.report(
      {.event = "introduction",
       .text =
           "A row in a database says how many widgets are in stock. Two workers, A and B, read it, "
           "compute, and write it back. They take turns by means of a lock. A lock must not stay "
           "locked when its holder dies, so it is a lease: it expires unless it is renewed.",
       .tone = Tone::kExplanation});
  demo.report({.event = "act", .text = "1. Without a guard", .tone = Tone::kHeading});
  const Demo::RunResult bare = demo.run(false);
  result.lost_without_guard =
      bare.row == widgets(kBefore + kDelivered) && bare.late_write == Fate::kLetThrough;
  need(row->reset(widgets(kBefore)));
  need(row->protect());
  demo.report({.event = "act", .text = "2. With a guard", .tone = Tone::kHeading});
  demo.report(
      {.event = "protected",
       .text =
           "The same again, but now the table is under guard: the database remembers the greatest "
           "token that it has seen, and refuses a write with a smaller one.",
       .tone = Tone::kExplanation});
  const Demo::RunResult guarded = demo.run(true);
  result.refused_with_guard =
      guarded.row == widgets(kBefore - kSold + kDelivered) && guarded.late_write == Fate::kRefused;
  result.refused_every_way = guarded.refused_every_way;
  return result;
}

}  // namespace

Result<DemoResult> run_demo(const DemoConfig& config, DemoView& view) {
  try {
    return run(config, view);
  } catch (const DrillAborted& aborted) {
    return aborted.error;
  } catch (const DrillInterrupted&) {
    return DemoResult{.interrupted = true};
  }
}

}  // namespace pawl::drill
