// The fixture of the machine's tests: a machine, the time, and the server's end of its connection,
// which the test plays.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/machine.h"
#include "wire/replies.h"
#include "wire/reply_writer.h"

namespace pawl::client {

using namespace std::chrono_literals;

inline constexpr LeaseId kLease{0x11, 0x22};
inline const std::string kLeaseText = "00000000000000110000000000000022";

class MachineTest : public testing::Test {
 protected:
  // What the machine has sent since the last call, each command as its words.
  std::vector<std::string> sent() {
    const std::string bytes = machine.take_output();
    std::vector<std::string> commands;
    wire::ReplyDecoder decoder;  // A command looks like a reply: an array of strings.
    for (std::string_view rest = bytes; !rest.empty();) {
      const auto frame = decoder.decode(rest);
      rest.remove_prefix(frame.consumed);
      std::string& command = commands.emplace_back();
      for (const wire::Value& word : frame.value.items)
        command += (command.empty() ? "" : " ") + word.text;
    }
    return commands;
  }
  std::string sent_one() {
    const auto commands = sent();
    EXPECT_EQ(commands.size(), 1u);
    return commands.empty() ? "" : commands.front();
  }

  void connect() {
    ASSERT_TRUE(machine.wants_connection(now));
    machine.connected(now);
    EXPECT_THAT(sent(), testing::ElementsAre("HELLO 3 SETNAME pawl"));
    receive("%1\r\n+server\r\n+pawl\r\n");
  }
  void lose_connection() {
    machine.disconnected("cut", now);
    EXPECT_FALSE(machine.wants_connection(now));  // Not at once: it backs off.
    now = std::max(now, machine.next_timer());
  }
  void receive(std::string_view bytes) { machine.received(bytes, now); }
  void receive_grant(Millis ttl, Millis waited = 0ms) {
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    wire::write_grant(reply, grant(ttl, waited));
    receive(bytes);
  }
  void receive_push(wire::WaitEvent event, const std::string& request, Millis ttl = 10s,
                    Millis waited = 0ms) {
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    const auto granted = grant(ttl, waited);
    wire::write_wait_push(reply, event, request,
                          event == wire::WaitEvent::kGranted ? &granted : nullptr);
    receive(bytes);
  }
  void receive_queued(std::uint64_t position) {
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    wire::write_queued(reply, {position});
    receive(bytes);
  }
  // An event of OBSERVE, numbered n.
  void receive_event(wire::EventKind kind, std::uint64_t n, std::string_view lock, Token token = {},
                     std::string_view owner = "") {
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    wire::EventView event;
    event.kind = kind;
    event.id = {Incarnation{1}, n};
    event.lock = lock;
    event.token = token;
    event.owner = owner;
    wire::write_event(reply, event);
    receive(bytes);
  }
  // The answer to OBSERVE.
  void receive_id(std::uint64_t n) { receive("+" + id(n) + "\r\n"); }
  static std::string id(std::uint64_t n) { return to_text(wire::EventId{Incarnation{1}, n}); }
  static wire::GrantReply grant(Millis ttl, Millis waited) {
    return {kLease, Token{34}, Token{34}, std::nullopt, ttl, waited};
  }
  void pass(Nanos span) {
    now += span;
    machine.on_timer(now);
  }

  CallId acquire(Millis wait = 0ms, Nanos patience = 1h) {
    return machine.acquire(
        {.locks = {"disk"}, .terms = {.ttl = 10s}, .wait = wait, .give_up = now + patience}, now);
  }
  // The outcome of the only call that has completed since the last check.
  template <class T>
  Result<T> outcome(CallId call) {
    auto done = machine.take_completions();
    EXPECT_EQ(done.size(), 1u);
    if (done.empty()) return Error{Code::kInvalid, "not complete"};
    EXPECT_EQ(done.front().call, call);
    return std::get<Result<T>>(done.front().outcome);
  }
  bool complete() { return !machine.take_completions().empty(); }
  static std::string request_of(const std::string& command) {
    const auto at = command.find("REQUEST ") + 8;
    return command.substr(at, command.find(' ', at) - at);
  }

  SeededRandom random{7};
  Machine machine{random};
  Instant now{1'000s};
};

}  // namespace pawl::client
