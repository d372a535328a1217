// Three connections to one engine, saying valid things in wrong orders: pipelined, cut in half,
// hung up in the middle, read slowly, while time passes, the store is late, full or crashes. After
// every turn:
//
//   - the core's state is consistent (core/testlib/invariants.h), and its last token never goes
//     back;
//   - each peer received what the protocol promises (peer.h), and nothing that is not durable (G2);
//   - a token belongs to one lease for ever (G1, P1, P6).
//
// In the end, when the store and every reader catch up, each command has its reply and nothing is
// left behind (P7).
#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "base/assert.h"
#include "base/log.h"
#include "core/records.h"
#include "core/testlib/invariants.h"
#include "server/engine.h"
#include "store/memory_store.h"
#include "tests/fuzz/commands.h"
#include "tests/fuzz/peer.h"
#include "tests/fuzz/script.h"
#include "wire/command_writer.h"

namespace pawl::fuzz {
namespace {

using server::ConnectionId;
using namespace std::chrono_literals;

constexpr std::size_t kConnections = 3;
constexpr int kStepsMax = 400;
constexpr int kDrainTurnsMax = 4000;  // Far more than all that can wait behind each other needs.

struct ManualClock final : server::ClockSource {
  server::ClockReading read() override { return reading; }
  server::ClockReading reading{Nanos(1), UnixMs{1'700'000'000'000}};
};

// One connection, from connected() until close() or a crash.
struct Line {
  ConnectionId id;
  Peer peer;
  std::string rest;     // of a command that was sent in part
  Sent rest_command;    // which it is
  std::string arrived;  // from the engine, not yet shown to the peer
  std::size_t window = SIZE_MAX;
  bool stalled = false;  // the engine waits for writable()
  bool hung_up = false;
  bool closed = false;
};

class World final : public server::Network {
 public:
  World() {
    for (std::size_t slot = 0; slot < kConnections; ++slot) connect(slot);
    start();
    for (auto& line : lines_) engine_->connected(line->id, "fuzz");
  }

  void step(Script& script) {
    const std::uint8_t action = script.byte();
    const std::size_t slot = action % kConnections;
    switch (action / kConnections % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return say(slot, script, SIZE_MAX);
      case 5:
        return say(slot, script, 1 + script.below(40));
      case 6:
      case 7:
        return turn();
      case 8:
        return live(1 + static_cast<int>(script.below(12)));
      case 9:
        clock_.reading.monotonic += Millis(script.word());
        return;
      case 10:
        return store_.hold();
      case 11:
        store_.release_next();
        return look();
      case 12:
        store_.release();
        return look();
      case 13:
        return hang_up(slot);
      case 14:
        return narrow(slot, script.byte());
      default:
        return rare(slot, script);
    }
  }

  // Everyone catches up, and time passes until all that waits and all that is held is over.
  void finish() {
    store_.release();
    store_.set_room(true);
    for (auto& line : lines_) {
      line->window = SIZE_MAX;
      flush_rest(*line);
    }
    for (int turns = 0; !quiet(); ++turns) {
      PAWL_ASSERT(turns < kDrainTurnsMax);
      writable();
      live(1);
    }
    const core::Totals totals = engine_->totals();
    PAWL_ASSERT(totals.locks == 0 && totals.leases == 0 && totals.waiters == 0);
    for (const auto& line : lines_) PAWL_ASSERT(line->closed || line->peer.satisfied());
  }

  // --- Network -----------------------------------------------------------------------------------
  std::size_t send(ConnectionId id, std::string_view bytes) override {
    Line& line = of(id);
    PAWL_ASSERT(!line.closed);
    const std::size_t taken = std::min(bytes.size(), line.window);
    if (line.window != SIZE_MAX) line.window -= taken;
    line.stalled = taken < bytes.size();
    line.arrived.append(bytes.substr(0, taken));
    return taken;
  }
  void want_input(ConnectionId id, bool /*wanted*/) override { PAWL_ASSERT(!of(id).closed); }
  void close(ConnectionId id) override {
    Line& line = of(id);
    PAWL_ASSERT(!line.closed);
    line.closed = true;
  }

 private:
  Line& of(ConnectionId id) {
    const auto found =
        std::find_if(lines_.begin(), lines_.end(), [&](const auto& l) { return l->id == id; });
    PAWL_ASSERT(found != lines_.end());
    return **found;
  }

  void connect(std::size_t slot) {
    lines_[slot] = std::make_unique<Line>();
    lines_[slot]->id = ConnectionId{++last_connection_};
  }

  void start() {
    engine_ = std::make_unique<server::Engine>(
        server::EngineSettings{}, server::EngineParts{store_, clock_, random_, *this, log_,
                                                      [](const Error&) { PAWL_ASSERT(false); }});
    PAWL_ASSERT(engine_->load());
    check_core();
  }

  // --- Actions -----------------------------------------------------------------------------------
  void say(std::size_t slot, Script& script, std::size_t part) {
    Line& line = *lines_[slot];
    const Spoken spoken = speak(script, known_);
    if (line.closed || line.hung_up) return;
    flush_rest(line);
    std::string bytes;
    const std::vector<std::string_view> args(spoken.args.begin(), spoken.args.end());
    wire::append_command(bytes, args);
    if (part < bytes.size()) {
      engine_->received(line.id, std::string_view(bytes).substr(0, part));
      line.rest = bytes.substr(part);
      line.rest_command = spoken.sent;
      return;
    }
    engine_->received(line.id, bytes);
    line.peer.sent(spoken.sent);
  }

  void flush_rest(Line& line) {
    if (line.rest.empty() || line.closed || line.hung_up) return;
    engine_->received(line.id, std::exchange(line.rest, {}));
    line.peer.sent(line.rest_command);
  }

  void hang_up(std::size_t slot) {
    Line& line = *lines_[slot];
    if (line.closed) {
      connect(slot);
      engine_->connected(lines_[slot]->id, "fuzz");
    } else if (!line.hung_up) {
      line.hung_up = true;
      engine_->hangup(line.id);
    }
  }

  void narrow(std::size_t slot, std::uint8_t window) {
    Line& line = *lines_[slot];
    line.window = window == 255 ? SIZE_MAX : window;
    writable();
  }

  void writable() {
    for (auto& line : lines_) {
      if (line->stalled && !line->closed && line->window > 0) {
        line->stalled = false;
        engine_->writable(line->id);
      }
    }
  }

  void rare(std::size_t slot, Script& script) {
    switch (script.below(6)) {
      case 0:
        return crash();
      case 1:
        return store_.set_room(false);
      case 2:
        return store_.set_room(true);
      case 3: {
        Line& line = *lines_[slot];
        const std::string_view bytes = script.bytes(script.below(32));
        if (line.closed || line.hung_up || bytes.empty()) return;
        line.peer.sent_garbage();
        return engine_->received(line.id, bytes);
      }
      case 4:  // A long life without a word.
        return live(700);
      default:
        return live(20);
    }
  }

  // kill -9, and a new start on what was durable.
  void crash() {
    engine_.reset();
    store_.crash();
    store_.release();
    for (std::size_t slot = 0; slot < kConnections; ++slot) {
      show(*lines_[slot]);
      connect(slot);
    }
    start();
    for (auto& line : lines_) engine_->connected(line->id, "fuzz");
  }

  void turn() {
    engine_->run_turn();
    PAWL_ASSERT(engine_->patience() >= Nanos(0));
    look();
    check_core();
  }

  void live(int turns) {
    for (; turns > 0; --turns) {
      clock_.reading.monotonic += server::kWakeEvery;
      engine_->run_turn();
    }
    look();
    check_core();
  }

  [[nodiscard]] bool quiet() {
    const core::Totals totals = engine_->totals();
    return totals.locks == 0 && std::all_of(lines_.begin(), lines_.end(), [](const auto& line) {
             return line->closed || (!line->hung_up && line->peer.satisfied());
           });
  }

  // --- What must hold ----------------------------------------------------------------------------
  void look() {
    for (auto& line : lines_) {
      show(*line);
      if (line->closed)
        PAWL_ASSERT(line->hung_up ? line->peer.answered() : line->peer.may_be_closed());
    }
  }

  void show(Line& line) {
    for (const wire::GrantReply& grant : line.peer.received(std::exchange(line.arrived, {})))
      received(grant);
    if (const auto event = line.peer.last_event()) learn(known_.events, to_text(*event));
  }

  void received(const wire::GrantReply& grant) {
    const auto counter = store_.records().find(core::kLastTokenKey);
    PAWL_ASSERT(counter != store_.records().end());
    const auto durable = core::decode_last_token(counter->second);
    PAWL_ASSERT(durable && *durable >= grant.token);
    PAWL_ASSERT(lease_of_.emplace(grant.token, grant.lease).first->second == grant.lease);
    learn(known_.leases, grant.lease);
    learn(known_.tokens, grant.token);
  }

  template <class T>
  static void learn(std::vector<T>& known, const T& item) {
    if (std::find(known.begin(), known.end(), item) != known.end()) return;
    if (known.size() >= 16) known.erase(known.begin());
    known.push_back(item);
  }

  void check_core() {
    const core::Snapshot state = core::snapshot(engine_->core(), engine_->now());
    for (const std::string& broken : core::check_state(state)) log_.error(broken);
    PAWL_ASSERT(core::check_state(state).empty());
    PAWL_ASSERT(state.totals.last_token >= last_token_);
    last_token_ = state.totals.last_token;
  }

  store::MemoryStore store_{Incarnation{7}};
  ManualClock clock_;
  SeededRandom random_{1};
  NoLog log_;
  std::array<std::unique_ptr<Line>, kConnections> lines_;
  std::unique_ptr<server::Engine> engine_;
  std::uint64_t last_connection_ = 0;
  Known known_;
  std::map<Token, LeaseId> lease_of_;
  Token last_token_;
};

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pawl::fuzz::Script script({reinterpret_cast<const char*>(data), size});
  pawl::fuzz::World world;
  for (int steps = 0; !script.done() && steps < pawl::fuzz::kStepsMax; ++steps) world.step(script);
  world.finish();
  return 0;
}
