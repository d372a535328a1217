#include "drill/demo.h"

#include <fmt/format.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/random.h"
#include "client/blocking_connection.h"
#include "client/boot_clock.h"
#include "drill/demo_row.h"
#include "drill/stage.h"
#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Tone = DemoEvent::Tone;

constexpr const char* kLock = "stock/widgets";
constexpr milliseconds kGlance{100};  // between two looks at the scene
constexpr std::size_t kBreath = 20;  // letters that a line is longer than it is, to look up from it
constexpr int kBefore = 10, kDelivered = 5, kSold = 3;

std::string widgets(int count) {
  return fmt::format("{} widgets", count);
}

// Who holds the lock, as pawld tells anyone who asks.
class Watcher {
 public:
  explicit Watcher(const client::Address& pawld) : pawld_({pawld}, random_, {}) {}

  void look(DemoScene& scene) {
    const auto reply = pawld_.command({.words = {"INSPECT", kLock}});
    scene.holder.clear();
    if (!reply) return;
    const wire::Value* holders = reply->find("holders");
    if (holders == nullptr || holders->items.empty()) return;
    const wire::Value& holder = holders->items.front();
    if (const auto* owner = holder.find("owner")) {
      scene.holder = owner->text.substr(owner->text.rfind(' ') + 1);
    }
    if (const auto* token = holder.find("token"))
      scene.token = static_cast<std::uint64_t>(token->integer);
    if (const auto* left = holder.find("expires_in_ms")) scene.left = milliseconds(left->integer);
  }

 private:
  SystemRandom random_;
  client::BlockingConnection pawld_;
};

class Demo {
 public:
  Demo(const DemoSetting& setting, DemoView& view, DemoRow& row, const client::Address& pawld)
      : setting_(setting),
        view_(view),
        row_(row),
        pawld_(pawld),
        watcher_(pawld),
        began_(client::boot_now()) {
    scene_.ttl = setting_.ttl;
  }

  // How many widgets there are in the end, and what became of the late write.
  struct Act {
    std::string row;
    Fate late = Fate::kUnknown;
  };

  Act play(bool guarded) {
    guarded_ = scene_.guarded = guarded;
    Stage stage(stage_setting());
    stage_ = &stage;
    const Act act = tell_story(stage);
    stage_ = nullptr;
    return act;
  }

  void tell(DemoEvent event) {
    event.guarded = guarded_;
    event.row = read();
    event.at = std::chrono::duration_cast<milliseconds>(client::boot_now() - began_);
    scene_.row = event.row;
    view_.tell(event);
    if (event.tone != Tone::kHeading)
      rest(setting_.per_letter * static_cast<std::int64_t>(event.text.size() + kBreath));
  }

 private:
  Setting stage_setting() {
    Setting made;
    made.drill = "demo";
    made.program = setting_.program;
    made.pawld = {pawld_};
    made.lock = kLock;
    made.ttl = setting_.ttl;
    made.target = row_.target();
    made.mode = guarded_ ? "enforce" : "none";
    made.stop = setting_.stop;
    made.wait = [this](std::string_view, Moment) { glance(); };
    return made;
  }

  Act tell_story(Stage& stage) {
    scene_.a = scene_.b = "starting";
    Actor& a = stage.enter("A");
    Actor& b = stage.enter("B");
    scene_.a = scene_.b = "ready";
    const std::uint64_t first = freeze_the_holder(stage, a);
    const std::uint64_t second = let_the_next_write(stage, b);
    const Fate fate = wake_the_former(stage, a, first, second);
    if (fate == Fate::kRefused) start_over(stage, a, b);
    Act act{read(), fate};
    scene_.a = scene_.b = "done";
    static_cast<void>(stage.finish());
    return act;
  }

  // A has read, has worked out what to write, has looked at its lease: all is well. Then it stops.
  std::uint64_t freeze_the_holder(Stage& stage, Actor& a) {
    const std::uint64_t token = stage.acquire(a);
    scene_.a = "holds the lock, and knows it";
    tell({.event = "granted",
          .who = "A",
          .token = token,
          .text = guarded_
                      ? fmt::format("gets the lock, with token {}.", token)
                      : fmt::format(
                            "gets the lock: a lease for {:g} s, which it renews while it is alive, "
                            "and a number, its token: {}.",
                            seconds(setting_.ttl), token)});
    scene_.a = "works: is about to write " + widgets(kBefore + kDelivered);
    tell({.event = "read",
          .who = "A",
          .token = token,
          .text = fmt::format("reads {}; {} more were delivered: it is about to write {}.", read(),
                              kDelivered, widgets(kBefore + kDelivered))});
    stage.freeze(a);
    scene_.a = "frozen; believes that it holds the lock";
    tell(
        {.event = "frozen",
         .who = "A",
         .token = token,
         .text =
             guarded_
                 ? "is frozen right there."
                 : "is frozen right there (SIGSTOP), as by a garbage collection, by swapping, by a "
                   "virtual machine that is moved. Nobody renews its lease now.",
         .tone = Tone::kBad});
    return token;
  }

  std::uint64_t let_the_next_write(Stage& stage, Actor& b) {
    stage.queue(b);
    scene_.b = "waits for the lock";
    tell({.event = "waits",
          .who = "B",
          .text = "wants the lock too, and waits for A's lease to run out."});
    const std::uint64_t token = stage.granted(b);
    scene_.b = "holds the lock, and knows it";
    tell({.event = "granted",
          .who = "B",
          .token = token,
          .text = fmt::format(
              "gets the lock, and rightly: A's lease is over. Its token is greater: {}.", token)});
    stage.advance(b);  // what every new holder should do before it reads
    const std::string value = widgets(kBefore - kSold);
    tell({.event = "read",
          .who = "B",
          .token = token,
          .text = fmt::format("reads {}, and sells {}.", read(), kSold)});
    write(stage, b, token, value);
    tell({.event = "written",
          .who = "B",
          .token = token,
          .text = fmt::format("writes {}.", value),
          .tone = Tone::kGood});
    return token;
  }

  // The write is the first thing that A does: it had looked at its lease before it froze.
  Fate wake_the_former(Stage& stage, Actor& a, std::uint64_t first, std::uint64_t second) {
    const std::string value = widgets(kBefore + kDelivered);
    tell({.event = "wakes",
          .who = "A",
          .token = first,
          .text =
              guarded_
                  ? fmt::format("is woken now, and goes on: it writes {}.", value)
                  : fmt::format(
                        "is woken now. It cannot know that time has passed, so it does what it was "
                        "about to do: it writes {}.",
                        value)});
    const std::size_t late = stage.send(a, first, Manner::kBlind, value);
    stage.wake(a);
    const Write wrote = stage.answered(late);
    if (wrote.fate != Fate::kRefused && wrote.fate != Fate::kLetThrough) {
      throw Impossible{
          {Code::kUnknown, "nobody knows what became of A's late write: " + wrote.detail}};
    }
    stage.knows_loss(a);
    if (wrote.fate == Fate::kRefused) {
      scene_.a = "was refused, and told why";
      tell(
          {.event = "refused",
           .who = "A",
           .token = first,
           .text = fmt::format(
               "is REFUSED by the database: token {} is older than {}, which it has seen. B's sale "
               "is still there, and A was told: it can start over.",
               first, second),
           .tone = Tone::kGood});
    } else {
      scene_.a = "knows by now that its lease was over: too late";
      tell(
          {.event = "written",
           .who = "A",
           .token = first,
           .text = fmt::format(
               "has overwritten what B wrote: there should be {} now. B's sale is LOST, and nobody "
               "was told.",
               widgets(kBefore - kSold + kDelivered)),
           .tone = Tone::kBad});
    }
    return wrote.fate;
  }

  // What a program does that was told.
  void start_over(Stage& stage, Actor& a, Actor& b) {
    stage.release(b);
    scene_.b = "done";
    const std::uint64_t token = stage.acquire(a);
    scene_.a = "holds the lock, and knows it";
    stage.advance(a);
    const std::string found = read();
    const std::string value = widgets(kBefore - kSold + kDelivered);
    write(stage, a, token, value);
    tell({.event = "written",
          .who = "A",
          .token = token,
          .text = fmt::format(
              "gets the lock again, with token {}, reads {}, and writes {}, which is right.", token,
              found, value),
          .tone = Tone::kGood});
  }

  static void write(Stage& stage, Actor& actor, std::uint64_t token, const std::string& value) {
    const Write& wrote = stage.answered(stage.send(actor, token, Manner::kBlind, value));
    if (wrote.fate == Fate::kAdmitted) return;
    throw Impossible{
        {Code::kUnknown, fmt::format("{} could not write: {}", actor.name(), wrote.detail)}};
  }

  static double seconds(milliseconds span) { return std::chrono::duration<double>(span).count(); }

  std::string read() {
    const DemoRow::Content content = need(row_.read());
    scene_.row_token = content.token;
    return content.value;
  }

  void glance() {
    if (client::boot_now() < glanced_ + kGlance) return;
    glanced_ = client::boot_now();
    watcher_.look(scene_);
    view_.show(scene_);
  }

  // Time to read a line, while everything goes on.
  void rest(milliseconds time) {
    if (stage_ == nullptr) return rest_between_acts(time);
    const client::Instant end = client::boot_now() + time;
    glance();
    while (client::boot_now() < end) {
      stage_->pass(std::min<milliseconds>(
          kGlance, std::chrono::ceil<milliseconds>(end - client::boot_now())));
      glance();
    }
  }

  void rest_between_acts(milliseconds time) const {
    pollfd stop{setting_.stop, POLLIN, 0};
    if (::poll(&stop, 1, static_cast<int>(time.count())) > 0) throw Interrupted{};
  }

  const DemoSetting& setting_;
  DemoView& view_;
  DemoRow& row_;
  const client::Address pawld_;
  Watcher watcher_;
  const client::Instant began_;
  client::Instant glanced_{};
  Stage* stage_ = nullptr;
  bool guarded_ = false;
  DemoScene scene_;
};

// A directory that is gone when this is.
class Scratch {
 public:
  Scratch() : path_(std::filesystem::temp_directory_path() / "pawl-demo-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Impossible{{Code::kUnavailable, "no temporary directory"}};
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Where the row is: in a file of the demo's own where the kind needs no server, else in the user's
// database.
std::string place_for_row(const DemoSetting& setting, const Scratch& scratch) {
  const guard::Kind* kind = need(guard::need_kind(setting.kind));
  if (kind->create == nullptr) return setting.where;
  const std::string path = scratch.file("stock.db");
  need(kind->create(path));
  return path;
}

DemoEnd play(const DemoSetting& setting, DemoView& view) {
  const Scratch scratch;
  const std::string where = place_for_row(setting, scratch);
  const auto row = need(DemoRow::make(setting.kind, where));
  const auto pawld = need(ThrowawayPawld::open(need(find_pawld())));
  Demo demo(setting, view, *row, pawld->address());
  DemoEnd end;
  need(row->reset(widgets(kBefore)));
  demo.tell(
      {.event = "introduction",
       .text =
           "A row in a database says how many widgets are in stock. Two workers, A and B, read it, "
           "work, and write "
           "it back. They use a lock to take turns. A lock must not stay locked when its holder "
           "dies, so it is a "
           "lease: it ends by itself unless it is renewed.",
       .tone = Tone::kExplains});
  demo.tell({.event = "act", .text = "1. Without a guard", .tone = Tone::kHeading});
  const Demo::Act bare = demo.play(false);
  end.lost_without = bare.row == widgets(kBefore + kDelivered) && bare.late == Fate::kLetThrough;
  need(row->reset(widgets(kBefore)));
  need(row->protect());
  demo.tell({.event = "act", .text = "2. With a guard", .tone = Tone::kHeading});
  demo.tell(
      {.event = "protected",
       .text =
           "The same again, but now the table is under guard: the database remembers the greatest "
           "token that it has "
           "seen, and refuses a write with a smaller one.",
       .tone = Tone::kExplains});
  const Demo::Act guarded = demo.play(true);
  end.refused_with =
      guarded.row == widgets(kBefore - kSold + kDelivered) && guarded.late == Fate::kRefused;
  return end;
}

}  // namespace

Result<DemoEnd> play_demo(const DemoSetting& setting, DemoView& view) {
  try {
    return play(setting, view);
  } catch (const Impossible& impossible) {
    return impossible.error;
  } catch (const Interrupted&) {
    return DemoEnd{.interrupted = true};
  }
}

}  // namespace pawl::drill
