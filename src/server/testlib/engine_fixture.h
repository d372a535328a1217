// An engine with nothing real around it: a network of strings, a clock moved by hand, a store in
// memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/engine.h"
#include "store/memory_store.h"

namespace pawl::server {

using namespace std::chrono_literals;

class FakeNetwork final : public Network {
 public:
  struct Line {
    std::string received;           // by the peer, and not yet looked at
    std::size_t sends = 0;          // calls that took something
    std::size_t window = SIZE_MAX;  // bytes it takes until told otherwise
    bool reading = true;
    bool closed = false;
  };

  std::size_t send(ConnectionId id, std::string_view bytes) override {
    Line& line = lines[id.value];
    EXPECT_FALSE(line.closed) << "sent to a closed connection";
    const std::size_t taken = std::min(bytes.size(), line.window);
    if (line.window != SIZE_MAX) line.window -= taken;
    line.received.append(bytes.substr(0, taken));
    if (taken > 0) ++line.sends;
    return taken;
  }
  void want_input(ConnectionId id, bool wanted) override { lines[id.value].reading = wanted; }
  void close(ConnectionId id) override {
    EXPECT_FALSE(lines[id.value].closed) << "closed twice";
    lines[id.value].closed = true;
  }

  std::map<std::uint64_t, Line> lines;
};

struct KeptLog final : Log {
  void write(LogLevel /*level*/, std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

struct ManualClock final : ClockSource {
  ClockReading read() override {
    ++reads;
    return reading;
  }
  void advance(Nanos by) {
    reading.monotonic += by;
    reading.wall.value += static_cast<std::uint64_t>(std::chrono::floor<Millis>(by).count());
  }
  ClockReading reading{Nanos(1), UnixMs{1'700'000'000'000}};
  int reads = 0;
};

// What a test says about a client: c.send("PING\r\n"); turn(); c.take() == "+PONG\r\n".
class EngineTest : public testing::Test {
 protected:
  class Client {
   public:
    Client(EngineTest& test, std::uint64_t id) : test_(&test), id_(id) {}
    [[nodiscard]] ConnectionId id() const { return ConnectionId{id_}; }
    FakeNetwork::Line& line() { return test_->network.lines[id_]; }
    Client& send(std::string_view bytes) {
      test_->engine().received(id(), bytes);
      return *this;
    }
    // One inline command.
    Client& say(const std::string& command) { return send(command + "\r\n"); }
    void hang_up() { test_->engine().hangup(id()); }
    // What arrived since the last look.
    std::string take() { return std::exchange(line().received, {}); }
    // Says it, takes a turn, and looks.
    std::string ask(const std::string& command) {
      say(command);
      test_->turn();
      return take();
    }
    bool closed() { return line().closed; }

   private:
    EngineTest* test_;
    std::uint64_t id_;
  };

  void SetUp() override { start(); }

  void start() {
    make_engine();
    const auto loaded = engine_->load();
    ASSERT_TRUE(loaded) << loaded.error().detail;
  }
  // A new start while another process is active in the store.
  void stand_by() {
    make_engine();
    engine_->stand_by();
  }
  // kill -9 and a new start on the same store; connections do not survive it.
  void restart() {
    engine_.reset();
    store.crash();
    start();
  }

  Engine& engine() { return *engine_; }
  // `user`: as a client certificate names it.
  Client connect(std::string_view user = {}) {
    const std::uint64_t id = ++last_client_;
    network.lines[id];
    engine().connected(ConnectionId{id}, "client:" + std::to_string(id), user);
    return {*this, id};
  }
  Client connect3() {
    Client client = connect();
    client.ask("HELLO 3");
    return client;
  }
  void turn() { engine().run_turn(); }
  void advance(Nanos by) { clock.advance(by); }
  // Time passes as it does for a loop that is never paused.
  void live(Nanos by) {
    for (; by > Nanos(0); by -= kWakeEvery) {
      clock.advance(std::min<Nanos>(by, kWakeEvery));
      turn();
    }
  }

  // The lease in a reply to ACQUIRE (RESP2 or RESP3).
  static std::string lease_in(const std::string& reply) {
    const auto at = reply.find("$32\r\n");
    return at == std::string::npos ? "" : reply.substr(at + 5, 32);
  }
  static std::int64_t token_in(const std::string& reply) {
    const auto at = reply.find("token\r\n:");
    return at == std::string::npos ? -1 : std::stoll(reply.substr(at + 8));
  }

  EngineSettings settings;
  store::MemoryStore store{Incarnation{7}};
  ManualClock clock;
  SeededRandom random{1};
  FakeNetwork network;
  KeptLog log;
  int fatal = 0;

 private:
  void make_engine() {
    engine_ = std::make_unique<Engine>(settings, EngineParts{store, clock, random, network, log,
                                                             [this](const Error&) { ++fatal; }});
  }

  std::unique_ptr<Engine> engine_;
  std::uint64_t last_client_ = 1;
};

}  // namespace pawl::server
