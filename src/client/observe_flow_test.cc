// Observing through the machine: in order, once, without a gap, over any number of connections.
#include "client/machine_fixture.h"

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
    EXPECT_THAT(heard(), ElementsAre("began"));
    return call;
  }
  void receive_granted(std::uint64_t n, std::string_view lock) {
    receive_event(EventKind::kGranted, n, lock, Token{n});
  }
  // What was told since the last look: "began", or the event and its number; for one observation if
  // asked.
  std::vector<std::string> heard(std::optional<CallId> by = {}) {
    std::vector<std::string> words;
    for (const Sighting& seen : machine.take_sightings()) {
      if (by && seen.call != *by) continue;
      words.push_back(!seen.event ? "began"
                                  : std::string(to_text(seen.event->kind)) + " " +
                                        seen.event->lock + " " + std::to_string(seen.event->id.n));
    }
    return words;
  }
};

TEST_F(ObserveTest, EventsAreToldInOrderFromTheAnswerOn) {
  begin("jobs/");
  receive_granted(101, "jobs/a");
  receive_event(EventKind::kReleased, 102, "jobs/a", Token{101});
  receive_granted(103, "jobs/b");
  EXPECT_THAT(heard(),
              ElementsAre("granted jobs/a 101", "released jobs/a 102", "granted jobs/b 103"));
  EXPECT_FALSE(complete());
  EXPECT_FALSE(machine.idle());
}

TEST_F(ObserveTest, GoesOnAfterTheEventThatItIsGiven) {
  machine.observe({.prefix = "jobs/", .from = wire::event_id_from_text(id(100))}, now);
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(100)));
  receive_id(100);
  receive_granted(101, "jobs/a");
  EXPECT_THAT(heard(), ElementsAre("granted jobs/a 101"));
}

TEST_F(ObserveTest, TheNextConnectionGoesOnFromTheLastEvent) {
  begin("jobs/");
  receive_granted(101, "jobs/a");
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(101)));
  receive_id(101);
  receive_granted(102, "jobs/b");
  EXPECT_THAT(heard(), ElementsAre("granted jobs/a 101", "granted jobs/b 102"));
}

// Otherwise the narrower one's events come first, and what the wider one has missed would pass for
// old.
TEST_F(ObserveTest, OnTheNextConnectionTheWiderPrefixGoesOnFirst) {
  begin("jobs/a");
  const CallId wider = observe("jobs/");
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/"));
  receive_id(100);
  lose_connection();
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/a FROM " + id(100)));
  heard();
  receive_id(100);
  receive_granted(101, "jobs/b");
  receive_granted(102, "jobs/a");
  receive_id(100);
  EXPECT_THAT(heard(wider), ElementsAre("granted jobs/b 101", "granted jobs/a 102"));
}

TEST_F(ObserveTest, AConnectionLostBeforeTheFirstEventGoesOnFromTheAnswer) {
  begin("jobs/", 7);
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(7)));
}

TEST_F(ObserveTest, AConnectionLostBeforeTheAnswerBeginsAnew) {
  observe("jobs/");
  connect();
  sent();
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/"));
  receive_id(9);
  EXPECT_THAT(heard(), ElementsAre("began"));
}

TEST_F(ObserveTest, AResetIsToldAndTheNextConnectionGoesOnFromIt) {
  begin("jobs/", 900);
  lose_connection();
  connect();
  sent();
  receive_id(12);  // pawld has lost what it knew, and counts from less.
  receive_event(EventKind::kReset, 12, "");
  receive_granted(13, "jobs/a");
  EXPECT_THAT(heard(), ElementsAre("reset  12", "granted jobs/a 13"));
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(13)));
}

TEST_F(ObserveTest, CancelEndsItOnTheSameConnection) {
  const CallId call = begin("jobs/");
  receive_granted(101, "jobs/a");
  machine.cancel(call, now);
  EXPECT_TRUE(outcome<Unobserved>(call));
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
  receive_granted(102, "jobs/b");  // It crossed the UNOBSERVE.
  EXPECT_THAT(heard(), IsEmpty());
  EXPECT_FALSE(machine.idle());
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, CancelledBeforeItsAnswerItIsEndedOnceThatIsThere) {
  const CallId call = observe("jobs/");
  connect();
  sent();
  machine.cancel(call, now);
  EXPECT_THAT(sent(), IsEmpty());
  receive_id(7);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
  EXPECT_THAT(heard(), IsEmpty());
  receive(":1\r\n");
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, CancelledWithoutAConnectionItIsOver) {
  const CallId call = begin("jobs/");
  lose_connection();
  machine.cancel(call, now);
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(machine.wants_connection(now));
}

TEST_F(ObserveTest, AHangUpWhileItEndsEndsIt) {
  const CallId call = begin("jobs/");
  machine.cancel(call, now);
  sent();
  machine.disconnected("cut", now);
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, ARefusalEndsItWithItsName) {
  const CallId call = observe("jobs/");
  connect();
  receive("-NOPERM observe: not for you\r\n");
  EXPECT_EQ(outcome<Unobserved>(call).error().code, Code::kDenied);
  EXPECT_TRUE(machine.idle());
}

TEST_F(ObserveTest, AnEventReachesEveryObservationItConcernsAndNoOther) {
  const CallId all = begin("jobs/");
  const CallId some = observe("jobs/a");
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/a"));
  receive_id(100);
  heard();
  receive_granted(101, "jobs/a1");
  receive_granted(102, "jobs/b");
  receive_granted(103, "elsewhere");
  const auto seen = machine.take_sightings();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].call, all);
  EXPECT_EQ(seen[1].call, some);
  EXPECT_EQ(seen[2].call, all);
}

TEST_F(ObserveTest, WhatIsToldAgainForAnotherWhoWasFurtherBackIsToldOnce) {
  const CallId first = begin("jobs/");
  receive_granted(101, "jobs/a");
  const CallId second = observe("job");
  receive_id(101);
  EXPECT_THAT(heard(first), ElementsAre("granted jobs/a 101"));
  receive_granted(102, "job");
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE job FROM " + id(102), "OBSERVE jobs/ FROM " + id(101)));
  heard();
  receive_id(102);
  receive_id(101);
  receive_granted(102, "jobs/x");  // Matches both; the second has been told up to 102.
  receive_granted(103, "jobs/y");
  std::vector<CallId> who;
  for (const Sighting& seen : machine.take_sightings()) who.push_back(seen.call);
  EXPECT_THAT(who, ElementsAre(first, first, second));
}

TEST_F(ObserveTest, OfTwoWithTheSamePrefixTheFirstToLeaveLeavesTheOtherItsEvents) {
  const CallId first = begin("jobs/");
  const CallId second = observe("jobs/");
  sent();
  receive_id(100);
  machine.cancel(first, now);
  EXPECT_THAT(sent(), IsEmpty());
  heard();
  receive_granted(101, "jobs/a");
  EXPECT_THAT(heard(second), ElementsAre("granted jobs/a 101"));
  machine.cancel(second, now);
  EXPECT_THAT(sent(), ElementsAre("UNOBSERVE jobs/"));
}

TEST_F(ObserveTest, TwoWithTheSamePrefixGoOnFromTheOlderOfTheirLastEvents) {
  begin("jobs/", 100);
  observe("jobs/");
  receive_id(105);
  sent();
  lose_connection();
  connect();
  EXPECT_THAT(sent(),
              ElementsAre("OBSERVE jobs/ FROM " + id(100), "OBSERVE jobs/ FROM " + id(100)));
}

TEST_F(ObserveTest, AnObserverThatWasCutForReadingTooSlowlyComesAgainAndItsCallsWithIt) {
  begin("jobs/");
  const CallId renewal = machine.renew({kLease, 10s}, now);
  sent();
  receive("-BUSY events: this connection reads too slowly\r\n");
  EXPECT_FALSE(complete());  // It was no answer to the renewal.
  EXPECT_TRUE(machine.wants_close());
  EXPECT_THAT(machine.trouble(), HasSubstr("too slowly"));
  lose_connection();
  connect();
  EXPECT_THAT(sent(), ElementsAre("OBSERVE jobs/ FROM " + id(100), "RENEW " + kLeaseText));
  receive_id(100);
  receive(":9000\r\n");
  EXPECT_TRUE(outcome<Renewal>(renewal));
}

TEST_F(ObserveTest, ASilentConnectionIsProbed) {
  begin("jobs/");
  pass(30s);
  EXPECT_THAT(sent(), ElementsAre("PING"));
}

}  // namespace
}  // namespace pawl::client
