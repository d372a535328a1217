// The fence of one resource behind a gate: which requests may be forwarded to a service that knows
// nothing of tokens, and which are refused (design rule 4). No I/O and no clock; the simulator of
// this folder's tests and the proxy run the same code.
//
//   fence.arrive(request, Token{34}, Kind::kWrite, now, actions);   // forward, refuse, or neither:
//   …                                                               // it waits
//   fence.answered(request, now, actions);                          // may let others go
//
// The rules, all of them needed (tests/models/gate.pml has a counterexample without each):
//   - Equal tokens run side by side. A lower one is refused from the moment a greater one arrived.
//   - A greater one is forwarded only when nothing lower is in flight. A forward whose outcome is
//     not known is in flight until its answer comes after all, or an operator settles it.
//   - On disk is one mark: the token, and whether it is open. It is opened before the first forward
//     under a token and after the drain of the lower ones, and closed after a drain. Closing keeps
//     the token. While a mark is being written nothing is forwarded.
//   - After a crash an open mark is a forward whose outcome is not known.
//
// A mark stays open while its token is in use, so requests need no sync of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/boot_time.h"
#include "base/types.h"
#include "pawl/guard.h"

namespace pawl::gate {

// One request at the gate. Made by the proxy; never used twice.
using RequestId = Number<struct GateRequestTag>;

// What is on disk of a fence.
struct Mark {
  Token token{};
  bool open = false;
  bool operator==(const Mark&) const = default;
};

enum class Kind : std::uint8_t {
  kWrite,
  // A read under a token: the fence advances to it before the read is forwarded (design rule 3).
  kRead,
};

// What the proxy has to do.
struct Action {
  enum class Type : std::uint8_t {
    kForward,    // send the request to the upstream
    kRefuse,     // verdict kStale or kAhead: answer it so, for good
    kGiveUp,     // it has waited long enough: answer that lower tokens are in flight
    kBusy,       // too many wait already
    kWriteMark,  // make `mark` durable, then call mark_written()
  };
  Type type = Type::kForward;
  RequestId request{};
  Verdict verdict = Verdict::kAdmitted;
  Token max{};  // the fence that it was compared with
  Mark mark{};  // with kWriteMark
};
using Actions = std::vector<Action>;

struct FenceSettings {
  // False in the modes observe and shadow: everything is forwarded at once, verdicts are counted.
  bool enforce = true;
  // How long a greater token waits for the lower ones.
  Nanos drain_wait = std::chrono::seconds(5);
  // A mark is closed when nothing was in flight for so long.
  Nanos close_after = std::chrono::seconds(1);
  std::size_t waiting_max = 1024;
  // A token beyond the fence by more is forged or corrupt.
  std::uint64_t step_max = std::uint64_t{1} << 44;
};

// For people and metrics.
struct FenceView {
  Token max{};
  Mark mark{};
  std::size_t in_flight = 0;  // forwards that may still be answered
  std::size_t unknown = 0;    // forwards whose outcome nobody will report; and those before a crash
  std::size_t waiting = 0;
  std::optional<Instant> oldest = {};  // of those in flight
};

class Fence {
 public:
  // `settings` outlives it. `recovered`: what was on disk when the gate started.
  Fence(const FenceSettings& settings, Mark recovered)
      : settings_(settings),
        max_(recovered.token),
        mark_(recovered),
        lost_(recovered.open ? 1 : 0) {}

  // A request with a valid token is here. Without an action for it, it waits.
  void arrive(RequestId request, Token token, Kind kind, Instant now, Actions& out);
  // A forward was answered, or it is certain that nothing of it was sent: it is over.
  void answered(RequestId request, Instant now, Actions& out);
  // Its answer did not come in time. It may still come.
  void timed_out(RequestId request);
  // Its answer will never come.
  void lost(RequestId request);
  // A request that waits is withdrawn.
  void leave(RequestId request);
  // The mark of the last kWriteMark is durable.
  void mark_written(Instant now, Actions& out);
  // An operator knows that no forward whose outcome is unknown will have an effect any more.
  // Returns how many there were.
  std::size_t settle(Instant now, Actions& out);
  // The gate stops: nobody waits any more, and the mark is closed as soon as possible.
  void stop(Instant now, Actions& out);
  // Call it at next_time(), or later.
  void on_time(Instant now, Actions& out);
  [[nodiscard]] std::optional<Instant> next_time() const;

  [[nodiscard]] Token max() const { return max_; }
  // Whether `request` has been forwarded and is not over.
  [[nodiscard]] bool has(RequestId request) const { return forwards_.contains(request); }
  // No write under way, nothing in flight, the mark closed.
  [[nodiscard]] bool is_quiet() const { return !writing_ && is_drained() && !mark_.open; }
  [[nodiscard]] FenceView view() const;

 private:
  struct Waiting {
    RequestId request;
    Kind kind;
    Instant until;
  };
  struct Forward {
    Instant since;
    bool timed_out = false;
  };

  [[nodiscard]] bool is_drained() const { return forwards_.empty() && lost_ == 0; }
  // Whether a request with the greatest token may be forwarded now.
  [[nodiscard]] bool may_forward(Kind kind) const;
  void forward(RequestId request, Kind kind, Verdict verdict, Instant now, Actions& out);
  void write(Mark mark, Actions& out);
  // Whatever has become possible: open the mark, forward, close the mark.
  void step(Instant now, Actions& out);

  const FenceSettings& settings_;
  Token max_{};           // the greatest token that has arrived, and was not ahead
  Mark mark_{};           // on disk, as far as is known
  bool writing_ = false;  // next_mark_ is being written
  Mark next_mark_{};
  bool stopping_ = false;
  std::unordered_map<RequestId, Forward> forwards_;  // writes only
  std::size_t lost_ = 0;
  std::deque<Waiting> waiting_;  // all with token max_, in order of arrival
  Instant drained_at_{};         // when the last forward was over
};

}  // namespace pawl::gate
