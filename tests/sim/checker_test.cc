// The checker must see what it is for: a clean history, and one planted fault for each property.
#include "sim/checker.h"

#include <gtest/gtest.h>

namespace pawl::sim {
namespace {

Moment at(int ms) {
  return Moment(Millis(ms));
}

// Token t, asked for and answered at these moments, believed until that one; TTL 100 ms.
Attempt held(std::uint64_t token, int asked, int answered, int until) {
  Attempt a;
  a.client = static_cast<int>(token);
  a.request = "request-" + std::to_string(token);
  a.locks = {"a"};
  a.ttl = Millis(100);
  a.asked = at(asked);
  a.answered = at(answered);
  a.token = Token{token};
  a.believed_until = at(until);
  return a;
}

Effect effect(std::uint64_t token, std::uint64_t op,
              Effect::Verdict verdict = Effect::Verdict::kAdmitted) {
  Effect e;
  e.resource = "a";
  e.token = Token{token};
  e.op = op;
  e.verdict = verdict;
  e.changed = verdict == Effect::Verdict::kAdmitted;
  e.at = at(500);
  return e;
}

Effect advance(std::uint64_t token) {
  Effect e = effect(token, 0);
  e.kind = Effect::Kind::kAdvance;
  e.changed = false;
  return e;
}

// Which property the first violation is of; "" when there is none.
std::string verdict(const History& history) {
  const auto faults = check(history);
  return faults.empty() ? "" : faults.front().substr(0, 2);
}

// Two holders in turn, the first of which released.
History clean() {
  History h;
  h.attempts = {held(1, 0, 10, 50), held(2, 20, 60, 100)};
  h.releases = {{Token{1}, at(50), at(55), true}, {Token{2}, at(100), at(105), true}};
  return h;
}

TEST(Checker, AcceptsACleanHistory) {
  History h = clean();
  h.renewals = {{Token{1}, at(30), at(35), true, Millis(100)},
                {Token{1}, at(57), at(59), false, {}}};
  h.sightings = {{"a", Token{1}, at(40), at(45)}, {"a", Token{2}, at(62), at(63)}};
  h.starts = {{at(0), Token{0}}, {at(70), Token{2}}};
  h.effects = {advance(1), effect(1, 1), effect(1, 1, Effect::Verdict::kReplayed),
               advance(2), effect(2, 1), effect(1, 2, Effect::Verdict::kStale)};
  h.effects.back().at = at(90);
  EXPECT_EQ(check(h), std::vector<std::string>{});
}

TEST(Checker, P1FindsATokenGrantedTwice) {
  History h = clean();
  h.attempts[1].token = Token{1};
  EXPECT_EQ(verdict(h), "P1");
}
TEST(Checker, P1FindsARequestGrantedTwice) {
  History h = clean();
  h.attempts[1].request = h.attempts[0].request;
  EXPECT_EQ(verdict(h), "P1");
}

TEST(Checker, P2FindsATokenThatWentBack) {
  History h;
  h.attempts = {held(7, 0, 10, 12), held(6, 15, 30, 32)};
  h.attempts[1].locks = {"b"};
  EXPECT_EQ(verdict(h), "P2");
  h.attempts[1].asked = at(9);  // Concurrent: any order is fine.
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, P3FindsALockGrantedTooEarly) {
  History h;
  h.attempts = {held(1, 0, 10, 40), held(2, 20, 90, 95)};  // 1 died; no grant before 99.
  EXPECT_EQ(verdict(h), "P3");
  h.attempts[1].answered = at(99);
  EXPECT_EQ(verdict(h), "");
  h.renewals = {{Token{1}, at(30), at(35), true, Millis(100)}};  // Now not before 129.
  EXPECT_EQ(verdict(h), "P3");
  h.demand = Demand::kClockFree;
  EXPECT_EQ(verdict(h), "");
}
TEST(Checker, P3IncludesTheDelayAfterExpiry) {
  History h;
  h.attempts = {held(1, 0, 10, 40), held(2, 20, 120, 125)};
  h.attempts[0].delay = Millis(50);
  EXPECT_EQ(verdict(h), "P3");
  h.releases = {{Token{1}, at(110), kOpen, false}};
  EXPECT_EQ(verdict(h), "");
}
TEST(Checker, P3FindsTooManyHoldersAndASlotGrantedTwice) {
  History h;
  h.attempts = {held(1, 0, 10, 12), held(2, 0, 11, 13), held(3, 0, 12, 14)};
  for (std::uint32_t i = 0; i < 3; ++i) {
    h.attempts[i].mode = Mode::kLimit;
    h.attempts[i].limit = 3;
    h.attempts[i].slot = i;
  }
  EXPECT_EQ(verdict(h), "");
  h.attempts[2].slot = 0;
  EXPECT_EQ(verdict(h), "P3");
  h.attempts[2].slot = 2;
  h.attempts[0].limit = 2;
  EXPECT_EQ(verdict(h), "P3");
}
TEST(Checker, P3FindsAReaderBesideAWriter) {
  History h;
  h.attempts = {held(1, 0, 10, 12), held(2, 0, 13, 14)};
  h.attempts[1].mode = Mode::kShared;
  EXPECT_EQ(verdict(h), "P3");
  h.attempts[0].mode = Mode::kShared;
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, P4FindsARevivedLease) {
  History h = clean();
  h.renewals = {{Token{1}, at(56), at(58), true, Millis(1)}};  // Its release was answered at 55.
  EXPECT_EQ(verdict(h), "P4");
  h.releases.erase(h.releases.begin());
  h.demand = Demand::kClockFree;
  h.attempts[0].believed_until = at(11);
  EXPECT_EQ(verdict(h), "");
  h.renewals[0].sent = h.renewals[0].returned = at(61);  // 2 was known at 60.
  EXPECT_EQ(verdict(h), "P4");
}
TEST(Checker, P4FindsARenewalAfterABreak) {
  History h = clean();
  h.breaks = {{Token{1}, false, at(20), at(25), true}};
  h.renewals = {{Token{1}, at(30), at(35), true, Millis(10)}};
  EXPECT_EQ(verdict(h), "P4");
}

TEST(Checker, P5FindsAnAppliedStaleWrite) {
  History h = clean();
  h.effects = {effect(1, 1), effect(2, 1), effect(1, 2)};
  EXPECT_EQ(verdict(h), "P5");
}
TEST(Checker, P5FindsAWriteBelowAnAdvance) {
  History h = clean();
  h.effects = {advance(2), effect(1, 1)};
  EXPECT_EQ(verdict(h), "P5");
}
TEST(Checker, P5FindsAnOperationAppliedTwice) {
  History h = clean();
  h.effects = {effect(1, 1), effect(1, 1)};
  EXPECT_EQ(verdict(h), "P5");
}
TEST(Checker, P5FindsAReplayOfAnOperationThatNeverHappened) {
  History h = clean();
  h.effects = {effect(1, 2), effect(1, 1, Effect::Verdict::kReplayed)};
  EXPECT_EQ(verdict(h), "P5");
}
TEST(Checker, P5FindsARefusalWithoutAReason) {
  History h = clean();
  h.effects = {effect(1, 1), effect(1, 2, Effect::Verdict::kStale)};
  EXPECT_EQ(verdict(h), "P5");
}
TEST(Checker, P5FindsARefusedLiveHolder) {
  History h = clean();
  h.effects = {advance(2), effect(1, 1, Effect::Verdict::kStale)};
  h.effects[1].at = at(49);
  EXPECT_EQ(verdict(h), "P5");
}

// A reader advances to its floor, the token of another reader, whose own answer may still be on its
// way.
TEST(Checker, P5AcceptsARefusalBeforeTheHolderHasItsReply) {
  History h = clean();
  h.attempts[0].answered = h.attempts[0].believed_until = at(50);
  h.effects = {advance(2), advance(1)};
  h.effects[1].verdict = Effect::Verdict::kStale;
  h.effects[1].at = at(49);
  EXPECT_EQ(check(h), std::vector<std::string>{});
}

TEST(Checker, P6FindsACounterThatWentBack) {
  History h = clean();
  h.starts = {{at(70), Token{1}}};
  EXPECT_EQ(verdict(h), "P6");
}

TEST(Checker, P7FindsAWaiterThatIsNeverServed) {
  History h = clean();
  h.attempts.push_back(held(0, 150, 0, 0));
  h.attempts.back().answered = kOpen;
  h.calm = at(200);
  EXPECT_EQ(verdict(h), "P7");
  h.attempts.back().ended = at(5'000);
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, P8FindsARetryWithAnotherGrant) {
  History h = clean();
  Replay r;
  r.request = "request-1";
  r.invoked = at(20);
  r.returned = at(25);
  r.answer = Replay::Answer::kNothing;
  h.replays = {r};
  EXPECT_EQ(verdict(h), "P8");
  h.replays[0].answer = Replay::Answer::kGranted;
  EXPECT_EQ(verdict(h), "");
  h.replays[0].altered = true;
  EXPECT_EQ(verdict(h), "P8");
  h.replays[0] = r;
  h.replays[0].invoked = at(70);  // Released at 55: LOST, until it is forgotten.
  h.replays[0].returned = at(75);
  EXPECT_EQ(verdict(h), "P8");
  h.replays[0].answer = Replay::Answer::kLost;
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, G2FindsALeaseLostTooEarly) {
  History h;
  h.attempts = {held(1, 0, 10, 90)};
  h.renewals = {{Token{1}, at(30), at(35), false, {}}};
  EXPECT_EQ(verdict(h), "G2");
  h.renewals.clear();
  h.attempts[0].lost_early = "expired";
  EXPECT_EQ(verdict(h), "G2");
}

TEST(Checker, G6FindsAnOvertakenWaiter) {
  History h = clean();
  h.attempts.push_back(held(3, 15, 106, 107));
  EXPECT_EQ(verdict(h), "");
  h.attempts[2].queued = at(18);  // In line before 2 asked.
  EXPECT_EQ(verdict(h), "G6");
}
TEST(Checker, G6FindsAGrantedWaitAfterItsCancel) {
  History h = clean();
  h.attempts[1].queued = at(22);
  h.withdrawals = {{"request-2", at(25), at(28)}};
  EXPECT_EQ(verdict(h), "G6");
}

TEST(Checker, G7FindsTwoClientsThatBelieveToHold) {
  History h = clean();
  h.attempts[0].believed_until = at(61);
  EXPECT_EQ(verdict(h), "G7");
}

TEST(Checker, P2FindsATokenBelowAnEarlierRaise) {
  History h = clean();
  h.raises = {{Token{2}, at(11), at(19)}};  // Answered before token 2 was asked for.
  EXPECT_EQ(verdict(h), "P2");
  h.raises[0].returned = at(21);  // While it was being asked for.
  EXPECT_EQ(verdict(h), "");
  h.raises[0] = {Token{9}, at(11), kOpen};  // Perhaps it never happened.
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, P6FindsAStartBelowARaise) {
  History h = clean();
  h.raises = {{Token{9}, at(110), at(115)}};
  h.starts = {{at(120), Token{9}}};
  EXPECT_EQ(verdict(h), "");
  h.starts[0].last_token = Token{8};
  EXPECT_EQ(verdict(h), "P6");
}

TEST(Checker, RestoreMayEndALeaseEarly) {
  History h;
  h.attempts = {held(1, 0, 10, 35)};
  h.attempts[0].lost_early = "unknown";
  h.renewals = {{Token{1}, at(30), at(35), false, {}}};
  h.replays = {{"request-1", false, at(36), at(37), Replay::Answer::kNothing, {}}};
  h.restores = {{at(20), Token{1000}}};
  EXPECT_EQ(verdict(h), "");
  h.restores[0].lost = at(40);  // It was not lost yet when pawld reported it.
  EXPECT_EQ(verdict(h), "P8");
  h.replays.clear();
  EXPECT_EQ(verdict(h), "G2");
  h.restores[0] = {at(20), Token{0}};  // Of a later era than the restore.
  EXPECT_EQ(verdict(h), "G2");
}

TEST(Checker, P4FindsALeaseThatSurvivedARestore) {
  History h;
  h.attempts = {held(1, 0, 10, 100)};
  h.restores = {{at(20), Token{1000}}};
  h.renewals = {
      {Token{1}, at(19), at(30), true, Millis(100)}};  // Answered before the store was lost.
  EXPECT_EQ(verdict(h), "");
  h.renewals[0].sent = at(21);
  EXPECT_EQ(verdict(h), "P4");
}

TEST(Checker, P3FindsAGrantTooSoonAfterARestore) {
  History h;
  h.attempts = {held(1, 0, 10, 50), held(1001, 30, 60, 90)};
  h.attempts[0].delay = Millis(200);
  h.restores = {{at(20), Token{1000}}};
  EXPECT_EQ(verdict(h), "P3");
  h.attempts[1] = held(1001, 30, 105, 130);  // The lease has run out, but not its delay.
  EXPECT_EQ(verdict(h), "P3");
  h.attempts[1] = held(1001, 30, 305, 330);
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, P7StartsWhenARestoredPawldGrantsAgain) {
  History h;
  h.attempts = {held(1, 0, 15'000, 15'001)};
  h.calm = at(0);
  EXPECT_EQ(verdict(h), "P7");
  h.starts = {{at(0), Token{0}, Millis(6000)}};
  EXPECT_EQ(verdict(h), "");
  h.starts[0].restoring = Millis(4000);
  EXPECT_EQ(verdict(h), "P7");
}

TEST(Checker, MHFindsARenewalBeyondMaxHold) {
  History h;
  h.attempts = {held(1, 0, 10, 600)};
  h.attempts[0].max_hold = Millis(300);
  h.renewals = {{Token{1}, at(80), at(85), true, Millis(100)}};
  EXPECT_EQ(verdict(h), "");
  h.renewals.push_back({Token{1}, at(400), at(401), true, Millis(100)});
  EXPECT_EQ(verdict(h), "MH");
  h.pauses = {{at(100), at(300)}};  // What pawld gives back.
  EXPECT_EQ(verdict(h), "");
  h.pauses.clear();
  h.starts = {{at(200), Token{1}}};  // The cap starts again with pawld.
  EXPECT_EQ(verdict(h), "");
}

TEST(Checker, ELFindsALeaderThatGoesBackOrHasAWrongName) {
  History h = clean();
  h.attempts[0].owner = "one";
  h.leaders = {{1, "a", Token{1}, "one", {}, at(12)},
               {1, "a", Token{}, "", {}, at(56)},
               {1, "a", Token{2}, "", {}, at(62)}};
  EXPECT_EQ(verdict(h), "");
  History back = h;
  back.leaders.push_back({1, "a", Token{1}, "one", {}, at(70)});
  EXPECT_EQ(verdict(back), "EL");
  back.leaders.back().observer = 2;  // That one is only slow.
  EXPECT_EQ(verdict(back), "");
  h.leaders[0].owner = "two";
  EXPECT_EQ(verdict(h), "EL");
}

}  // namespace
}  // namespace pawl::sim
