// The leader of an election, in order, with the value that only INSPECT shows.
#include "client/leader_watch.h"

#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::EventKind;

class LeaderWatchTest : public MachineTest {
 protected:
  // Watches, and pawld has answered OBSERVE.
  void begin() {
    connect();
    EXPECT_THAT(sent(), ElementsAre("OBSERVE chief"));
    receive_id(100);
    process();
    EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  }
  void begin_free() {
    begin();
    receive_free();
    EXPECT_THAT(changes(), ElementsAre("nobody"));
  }
  void receive_held(std::uint64_t token, const std::string& value) {
    const std::string number = std::to_string(token);
    std::string bytes;
    wire::ReplyWriter reply(bytes, wire::Protocol::kResp3);
    reply.map(2);
    reply.bulk("holders");
    reply.array(1);
    reply.map(3);
    reply.field("token", token);
    reply.field("owner", "owner" + number);
    reply.bulk("meta");
    reply.map(1);
    reply.field("value", value);
    reply.field("last_token", token);
    receive(bytes);
  }
  void receive_free() { receive("%1\r\n+holders\r\n*0\r\n"); }
  // The next event.
  void receive_next(EventKind kind, const std::string& lock, std::uint64_t token) {
    receive_event(kind, ++last_, lock, Token{token}, "owner" + std::to_string(token));
    process();
  }
  void receive_granted(std::uint64_t token) { receive_next(EventKind::kGranted, "chief", token); }
  void receive_released(std::uint64_t token) { receive_next(EventKind::kReleased, "chief", token); }
  void receive_reset() { receive_next(EventKind::kReset, "", 0); }
  void process() {
    for (const Completion& done : machine.take_completions())
      EXPECT_TRUE(watch.on_completion(done, now));
    for (const ObservedEvent& seen : machine.take_observed_events())
      EXPECT_TRUE(watch.on_event(seen, now));
  }
  // The changes since the last call: "5=value" (? when not known), "nobody", or the error.
  std::vector<std::string> changes() {
    process();
    std::vector<std::string> words;
    for (const auto& change : watch.take_changes()) {
      if (!change) {
        words.push_back(change.error().detail);
      } else if (!*change) {
        words.push_back("nobody");
      } else {
        EXPECT_EQ((*change)->owner, "owner" + std::to_string((*change)->token.value));
        words.push_back(std::to_string((*change)->token.value) + "=" +
                        (*change)->value.value_or("?"));
      }
    }
    return words;
  }

  std::uint64_t last_ = 100;
  LeaderWatch watch{machine, "chief", now};
};

TEST_F(LeaderWatchTest, CurrentLeaderIsTheFirstChange) {
  begin();
  EXPECT_THAT(changes(), IsEmpty());
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=a"));
}

TEST_F(LeaderWatchTest, NoLeaderIsAFirstChangeToo) {
  begin_free();
}

TEST_F(LeaderWatchTest, GrantHasItsValueAndEndIsNoLeader) {
  begin_free();
  receive_granted(5);
  EXPECT_THAT(changes(), IsEmpty());
  EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=a"));
  receive_next(EventKind::kExpired, "chief", 5);
  EXPECT_THAT(changes(), ElementsAre("nobody"));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(LeaderWatchTest, LocksThatOnlyStartWithTheNameAreIgnored) {
  begin();
  receive_held(5, "a");
  receive_next(EventKind::kGranted, "chief2", 6);
  receive_next(EventKind::kReleased, "chief/x", 5);
  receive_next(EventKind::kRaised, "", 50);
  EXPECT_THAT(changes(), ElementsAre("5=a"));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(LeaderWatchTest, EventsBeforeTheFirstAnswerArePartOfIt) {
  begin();
  receive_granted(5);
  receive_released(5);
  receive_granted(6);
  EXPECT_THAT(changes(), IsEmpty());
  receive_held(6, "b");
  EXPECT_THAT(changes(), ElementsAre("6=b"));
}

TEST_F(LeaderWatchTest, EventOlderThanTheAnswerIsIgnored) {
  begin();
  receive_held(6, "b");
  receive_granted(5);
  receive_released(5);
  receive_granted(6);
  EXPECT_THAT(changes(), ElementsAre("6=b"));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(LeaderWatchTest, EventRightAfterTheFirstAnswerIsAChange) {
  begin();
  receive_free();
  receive_event(EventKind::kGranted, 101, "chief", Token{5},
                "owner5");  // Read together with the answer.
  EXPECT_THAT(changes(), ElementsAre("nobody"));
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=a"));
}

TEST_F(LeaderWatchTest, EventsRightBeforeTheFirstAnswerAreIgnored) {
  begin();
  receive_event(EventKind::kGranted, 101, "chief", Token{5},
                "owner5");  // Read together with the answer.
  receive_event(EventKind::kReleased, 102, "chief", Token{5});
  receive_free();
  EXPECT_THAT(changes(), ElementsAre("nobody"));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(LeaderWatchTest, LeaderThatTheAnswerIncludesAsPastIsIgnored) {
  begin();
  receive("%2\r\n+holders\r\n*0\r\n+last_token\r\n:5\r\n");
  receive_granted(5);
  receive_released(5);
  EXPECT_THAT(changes(), ElementsAre("nobody"));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(LeaderWatchTest, LeaderWithoutAnInspectAnswerHasNoValue) {
  begin_free();
  receive_granted(5);
  sent();
  receive_free();
  EXPECT_THAT(changes(), ElementsAre("5=?"));
  EXPECT_THAT(sent(), IsEmpty());
  receive_released(5);
  EXPECT_THAT(changes(), ElementsAre("nobody"));
}

TEST_F(LeaderWatchTest, LeaderThatEndedBeforeInspectHasNoValue) {
  begin_free();
  receive_granted(5);
  sent();
  receive_held(7, "c");  // The events of it are still to come.
  EXPECT_THAT(changes(), ElementsAre("5=?"));
  receive_released(5);
  EXPECT_THAT(changes(), ElementsAre("nobody"));
  receive_granted(7);
  EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  receive_held(7, "c");
  EXPECT_THAT(changes(), ElementsAre("7=c"));
}

TEST_F(LeaderWatchTest, ChangesWaitForEarlierValues) {
  begin_free();
  receive_granted(5);
  EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  receive_released(5);
  receive_granted(6);
  EXPECT_THAT(changes(), IsEmpty());
  receive_held(5, "a");  // Answered before the release.
  EXPECT_THAT(changes(), ElementsAre("5=a", "nobody"));
  EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  receive_held(6, "b");
  EXPECT_THAT(changes(), ElementsAre("6=b"));
}

TEST_F(LeaderWatchTest, LostConnectionLosesNoChange) {
  begin_free();
  receive_granted(5);
  sent();
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE chief FROM " + id(101), "INSPECT chief"));
  receive_id(101);
  receive_released(5);
  receive_granted(6);
  receive_held(6, "b");
  EXPECT_THAT(changes(), ElementsAre("5=?", "nobody", "6=b"));
}

TEST_F(LeaderWatchTest, ResetWithTheSameLeaderIsNoChange) {
  begin();
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=a"));
  receive_reset();
  EXPECT_THAT(sent(), ElementsAre("INSPECT chief"));
  receive_held(5, "a");
  EXPECT_THAT(changes(), IsEmpty());
  receive_released(5);
  EXPECT_THAT(changes(), ElementsAre("nobody"));
}

TEST_F(LeaderWatchTest, ResetWithAnotherLeaderIsAChange) {
  begin();
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=a"));
  receive_reset();
  receive_held(8, "d");
  EXPECT_THAT(changes(), ElementsAre("8=d"));
  receive_reset();
  receive_free();
  EXPECT_THAT(changes(), ElementsAre("nobody"));
}

TEST_F(LeaderWatchTest, ResetAfterAPendingGrantKeepsTheOrder) {
  begin_free();
  receive_granted(5);
  receive_reset();
  receive_held(9, "e");
  EXPECT_THAT(changes(), ElementsAre("5=?", "9=e"));
}

TEST_F(LeaderWatchTest, RefusalIsTheLastChange) {
  connect();
  receive("-NOPERM observe: not for you\r\n");
  EXPECT_THAT(changes(), ElementsAre("NOPERM observe: not for you"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(LeaderWatchTest, RefusedInspectEndsTheObservation) {
  begin();
  receive("-NOPERM inspect: not for you\r\n");
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE chief"));
  receive(":1\r\n");
  process();
  EXPECT_TRUE(machine.idle());
}

TEST_F(LeaderWatchTest, NoChangeFollowsARefusal) {
  begin_free();
  receive_granted(5);
  sent();
  lose_connection();
  connect();
  receive("-NOPERM observe: not for you\r\n");
  receive_held(5, "a");
  EXPECT_THAT(changes(), ElementsAre("5=?", "NOPERM observe: not for you"));
  EXPECT_TRUE(machine.idle());
}

TEST_F(LeaderWatchTest, StopLeavesNothingBehind) {
  begin_free();
  receive_granted(5);
  sent();
  watch.stop(now);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE chief"));
  receive_held(5, "a");
  receive(":1\r\n");
  EXPECT_THAT(changes(), IsEmpty());
  EXPECT_TRUE(machine.idle());
}

}  // namespace
}  // namespace pawl::client
