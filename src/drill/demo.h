// `pawl demo`: what a worker that wakes up late does to a row, first without a guard, then with
// one.
//
// Two real processes take turns with a throw-away pawld and change a row of a real table. A holds
// the lock, is frozen (SIGSTOP) for longer than its lease, and writes when it resumes. Without a
// guard this overwrites what B wrote; with one the database refuses it. Nothing is left behind,
// however it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "drill/config.h"
#include "pawl/result.h"

namespace pawl::drill {

// Something happened: a line for people, and the same as facts for programs.
struct DemoEvent {
  enum class Tone : std::uint8_t { kPlain, kHeading, kGood, kBad, kExplanation };

  // introduction, act, protected, granted, read, frozen, waits, written, wakes, refused, retried.
  // These are also the values of "event" in the JSON output.
  std::string_view event;
  std::string worker = {};  // A or B; empty: the event is not about one worker
  std::uint64_t token = 0;  // 0: no token is involved
  std::string text;
  Tone tone = Tone::kPlain;
  // Filled in by the demo:
  bool guarded = false;               // which of the two runs
  std::string row = {};               // the content of the row then
  std::chrono::milliseconds at = {};  // since the demo began
};

// The present state, for a view that draws it.
struct DemoStatus {
  std::string holder;  // of the lock, as pawld knows it; empty: nobody
  std::uint64_t token = 0;
  std::chrono::milliseconds left{};  // of its lease
  std::chrono::milliseconds ttl{};
  std::string a, b;  // what each worker does and believes
  std::string row;
  std::uint64_t row_token = 0;  // that the row was last written with
  bool guarded = false;
};

class DemoView {
 public:
  virtual ~DemoView() = default;
  virtual void on_event(const DemoEvent& event) = 0;
  // Several times a second.
  virtual void show(const DemoStatus& status) = 0;
};

struct DemoConfig {
  // Used of it: program, ttl, stop_fd, and target.kind and target.where. For a kind that needs no
  // server a ScratchDatabase is made.
  DrillConfig drill = {};
  // Pause after each line, so that it can be read.
  std::chrono::milliseconds per_letter{26};
};

struct DemoResult {
  bool interrupted = false;
  bool lost_without_guard = false;  // B's write was overwritten
  bool refused_with_guard = false;  // A's late write was refused
  bool refused_every_way = false;   // also without asking the guard, and without a token
  [[nodiscard]] bool as_expected() const {
    return lost_without_guard && refused_with_guard && refused_every_way;
  }
};

// An error: the demo could not be run, and why. It says nothing about the guard.
[[nodiscard]] Result<DemoResult> run_demo(const DemoConfig& config, DemoView& view);

}  // namespace pawl::drill
