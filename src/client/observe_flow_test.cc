// Observing through the machine: in order, once, without a gap, over any number of connections.
#include "client/testlib/machine_fixture.h"

namespace pawl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::EventKind;

class ObserveTest : public MachineTest {
 protected:
  CallId observe(const std::string& prefix) { return machine.observe({.prefix = prefix}, now); }
  // Observed, and pawld has answered with id n.
  CallId begin(const std::string& prefix, std::uint64_t n = 100) {
    const CallId call = observe(prefix);
    connect();
    EXPECT_THAT(sent(), ElementsAre("OBSERVE " + prefix));
    receive_id(n);
    EXPECT_THAT(observed(), ElementsAre("began"));
    return call;
  }
  void receive_granted(std::uint64_t n, std::string_view lock) {
    receive_event(EventKind::kGranted, n, lock, Token{n});
  }
  // The events since the last call: "began", or the event and its number; of one observation if
  // asked.
  std::vector<std::string> observed(std::optional<CallId> by = {}) {
    std::vector<std::string> words;
    for (const ObservedEvent& seen : machine.take_observed_events()) {
      if (by && seen.call != *by) continue;
      words.push_back(!seen.event ? "began"
                                  : std::string(to_text(seen.event->kind)) + " " +
                                        seen.event->lock + " " + std::to_string(seen.event->id.n));
    }
    return words;
  }
};

TEST_F(ObserveTest, EventsFollowTheAnswerInOrder) {
  begin("jobs/");
  receive_granted(101, "jobs/a");
  receive_event(EventKind::kReleased, 102, "jobs/a", Token{101});
  receive_granted(103, "jobs/b");
  EXPECT_THAT(observed(),
              ElementsAre("granted jobs/a 101", "released jobs/a 102", "granted jobs/b 103"));
  EXPECT_FALSE(complete());
  EXPECT_FALSE(machine.idle());
}

TEST_F(ObserveTest, EventThatIsNotStoredHasTheNumberOfTheOneBefore) {
  const CallId call = machine.observe({.prefix = "disk"}, now);
  connect();
  EXPECT_EQ(sent_one(), "OBSERVE disk");
  receive_id(10);
  receive_event(wire::EventKind::kGranted, 11, "disk", Token{34});
  receive_event(wire::EventKind::kReleaseWanted, 11, "disk", Token{34}, "bob");
  const auto seen = machine.take_observed_events();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen.back().call, call);
  EXPECT_EQ(seen.back().event->kind, wire::EventKind::kReleaseWanted);
  EXPECT_EQ(seen.back().event->owner, "bob");
}

TEST_F(ObserveTest, StartsAfterTheGivenEvent) {
  machine.observe({.prefix = "jobs/", .from = wire::event_id_from_text(id(100))}, now);
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(100)));
  receive_id(100);
  receive_granted(101, "jobs/a");
  EXPECT_THAT(observed(), ElementsAre("granted jobs/a 101"));
}

TEST_F(ObserveTest, NextConnectionContinuesFromTheLastEvent) {
  begin("jobs/");
  receive_granted(101, "jobs/a");
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(101)));
  receive_id(101);
  receive_granted(102, "jobs/b");
  EXPECT_THAT(observed(), ElementsAre("granted jobs/a 101", "granted jobs/b 102"));
}

// Otherwise the narrower one's events come first, and what the wider one has missed would pass for
// old.
TEST_F(ObserveTest, ShorterPrefixIsResumedFirst) {
  begin("jobs/a");
  const CallId wider = observe("jobs/");
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/"));
  receive_id(100);
  lose_connection();
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/a FROM " + id(100)));
  observed();
  receive_id(100);
  receive_granted(101, "jobs/b");
  receive_granted(102, "jobs/a");
  receive_id(100);
  EXPECT_THAT(observed(wider), ElementsAre("granted jobs/b 101", "granted jobs/a 102"));
}

// Asked first, the standby refuses the wider one; the narrower one has no answer yet. What the
// narrower one receives must not overtake what the wider one has missed.
TEST_F(ObserveTest, ShorterPrefixIsResumedFirstAfterAStandbyWasAsked) {
  begin("jobs/a");
  observe("jobs/");
  sent();
  receive_id(100);
  lose_connection();
  connect();
  sent();
  receive("-READONLY active=db2:7295\r\n");
  machine.disconnected("closed", now);
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/a FROM " + id(100)));
}

// The wider one came too early, the narrower one did not: then both are asked for again.
TEST_F(ObserveTest, ObservationsAreResumedTogetherWhenOneWasPutOff) {
  begin("jobs/a");
  observe("jobs/");
  sent();
  receive_id(100);
  lose_connection();
  connect();
  sent();
  receive("-LOADING pawld is still reading its data\r\n");
  receive_id(100);
  EXPECT_TRUE(machine.wants_close());
  lose_connection();
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/a FROM " + id(100)));
}

TEST_F(ObserveTest, ConnectionLostBeforeAnEventResumesFromTheAnswer) {
  begin("jobs/", 7);
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(7)));
}

TEST_F(ObserveTest, ConnectionLostBeforeTheAnswerStartsAnew) {
  observe("jobs/");
  connect();
  sent();
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/"));
  receive_id(9);
  EXPECT_THAT(observed(), ElementsAre("began"));
}

TEST_F(ObserveTest, ResetIsReportedAndResumedFrom) {
  begin("jobs/", 900);
  lose_connection();
  connect();
  sent();
  receive_id(12);  // pawld has lost what it knew, and counts from less.
  receive_event(EventKind::kReset, 12, "");
  receive_granted(13, "jobs/a");
  EXPECT_THAT(observed(), ElementsAre("reset  12", "granted jobs/a 13"));
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(13)));
}

TEST_F(ObserveTest, CancelSendsUnobserve) {
  const CallId call = begin("jobs/");
  receive_granted(101, "jobs/a");
  machine.cancel(call, now);
  EXPECT_TRUE(outcome<ObserveEnded>(call));
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
  receive_granted(102, "jobs/b");  // It crossed the UNOBSERVE.
  EXPECT_THAT(observed(), IsEmpty());
  EXPECT_FALSE(machine.idle());
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, CancelBeforeTheAnswerUnobservesAfterIt) {
  const CallId call = observe("jobs/");
  connect();
  sent();
  machine.cancel(call, now);
  EXPECT_THAT(sent(), IsEmpty());
  receive_id(7);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
  EXPECT_THAT(observed(), IsEmpty());
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, CancelWithoutAConnectionFinishes) {
  const CallId call = begin("jobs/");
  lose_connection();
  machine.cancel(call, now);
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(machine.wants_connection(now));
}

TEST_F(ObserveTest, HangUpDuringUnobserveFinishes) {
  const CallId call = begin("jobs/");
  machine.cancel(call, now);
  sent();
  machine.disconnected("cut", now);
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, RefusalEndsTheObservation) {
  const CallId call = observe("jobs/");
  connect();
  receive("-NOPERM observe: not for you\r\n");
  EXPECT_EQ(outcome<ObserveEnded>(call).error().code, Code::kDenied);
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, EventReachesEveryMatchingObservation) {
  const CallId all = begin("jobs/");
  const CallId some = observe("jobs/a");
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/a"));
  receive_id(100);
  observed();
  receive_granted(101, "jobs/a1");
  receive_granted(102, "jobs/b");
  receive_granted(103, "elsewhere");
  const auto seen = machine.take_observed_events();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].call, all);
  EXPECT_EQ(seen[1].call, some);
  EXPECT_EQ(seen[2].call, all);
}

TEST_F(ObserveTest, EventRepeatedForAnotherObservationIsReportedOnce) {
  const CallId first = begin("jobs/");
  receive_granted(101, "jobs/a");
  const CallId second = observe("job");
  receive_id(101);
  EXPECT_THAT(observed(first), ElementsAre("granted jobs/a 101"));
  receive_granted(102, "job");
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE job FROM " + id(102), "OBSERVE jobs/ FROM " + id(101)));
  observed();
  receive_id(102);
  receive_id(101);
  receive_granted(102, "jobs/x");  // Matches both; the second has reported up to 102.
  receive_granted(103, "jobs/y");
  std::vector<CallId> calls;
  for (const ObservedEvent& seen : machine.take_observed_events()) calls.push_back(seen.call);
  EXPECT_THAT(calls, ElementsAre(first, first, second));
}

TEST_F(ObserveTest, CancelKeepsTheOtherObservationOfThePrefix) {
  const CallId first = begin("jobs/");
  const CallId second = observe("jobs/");
  sent();
  receive_id(100);
  machine.cancel(first, now);
  EXPECT_THAT(sent(), IsEmpty());
  observed();
  receive_granted(101, "jobs/a");
  EXPECT_THAT(observed(second), ElementsAre("granted jobs/a 101"));
  machine.cancel(second, now);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
}

TEST_F(ObserveTest, SamePrefixResumesFromTheOldestEvent) {
  begin("jobs/", 100);
  observe("jobs/");
  receive_id(105);
  sent();
  lose_connection();
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/ FROM " + id(100)));
}

TEST_F(ObserveTest, SlowObserverReconnectsWithItsCalls) {
  begin("jobs/");
  const CallId renewal = machine.renew({kLease, 10s}, now);
  sent();
  receive("-BUSY events: this connection reads too slowly\r\n");
  EXPECT_FALSE(complete());  // It was no answer to the renewal.
  EXPECT_TRUE(machine.wants_close());
  EXPECT_THAT(machine.last_error(), HasSubstr("too slowly"));
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(100), "RENEW " + kLeaseText));
  receive_id(100);
  receive(":9000\r\n");
  EXPECT_TRUE(outcome<RenewResult>(renewal));
}

TEST_F(ObserveTest, ObservingConnectionIsProbed) {
  begin("jobs/");
  pass(30s);
  EXPECT_THAT(sent(), ElementsAre("PING"));
}

}  // namespace
}  // namespace pawl::client
