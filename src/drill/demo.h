// The demo: what happens when a worker is late, first without a guard and then with one, in a
// minute.
//
// Two real processes take turns with a real pawld of the demo's own, and change a row of a real
// table. A holds the lock, is frozen (SIGSTOP) for longer than its lease, and writes when it wakes.
// Without a guard this destroys what B wrote; with one the database refuses it. Nothing is left
// behind, whatever way it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::drill {

// Something happened: a line for people, and the same as facts.
struct DemoEvent {
  enum class Tone : std::uint8_t { kPlain, kHeading, kGood, kBad, kExplains };

  std::string_view
      event;  // introduction, act, protected, granted, read, frozen, waits, written, wakes, refused
  std::string who = {};     // A, B, pawld; empty: the one who tells
  std::uint64_t token = 0;  // 0: none takes part
  std::string text;         //
  Tone tone = Tone::kPlain;
  // Filled in by the demo:
  bool guarded = false;               // which of the two acts
  std::string row = {};               // its content then
  std::chrono::milliseconds at = {};  // since the demo began
};

// How things are, a few times a second.
struct DemoScene {
  std::string holder;  // as pawld knows it; empty: nobody
  std::uint64_t token = 0;
  std::chrono::milliseconds left{};  // of its lease
  std::chrono::milliseconds ttl{};
  std::string a, b;  // what each does and believes
  std::string row;
  std::uint64_t row_token = 0;
  bool guarded = false;
};

class DemoView {
 public:
  virtual ~DemoView() = default;
  virtual void tell(const DemoEvent& event) = 0;
  virtual void show(const DemoScene& scene) = 0;
};

struct DemoSetting {
  std::string program = "/proc/self/exe";  // pawl
  std::string kind;        // of guard; without a server (Kind::create) in a file of the demo's own
  std::string where = {};  // their DSN
  std::chrono::milliseconds ttl{6'000};
  std::chrono::milliseconds per_letter{26};  // time to read what is told
  int stop = -1;                             // a descriptor that can be read once it is to stop
};

struct DemoEnd {
  bool interrupted = false;
  bool lost_without = false;  // without a guard, what B wrote was overwritten
  bool refused_with = false;  // with it, it was not
  [[nodiscard]] bool as_told() const { return lost_without && refused_with; }
};

// An error says that the demo could not be given, and why; not that a guard failed.
[[nodiscard]] Result<DemoEnd> play_demo(const DemoSetting& setting, DemoView& view);

}  // namespace pawl::drill
