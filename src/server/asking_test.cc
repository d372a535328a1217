// ASK: what is answered, who hears of it, and how it reaches observers.
#include "server/testlib/access_fixture.h"
#include "wire/events.h"
#include "wire/replies.h"
#include "wire/reply_decoder.h"

namespace pawl::server {
namespace {

wire::Value decoded(const std::string& bytes) {
  auto decoded = wire::ReplyDecoder().decode(bytes);
  EXPECT_EQ(decoded.status, wire::DecodeStatus::kComplete) << bytes;
  return std::move(decoded.value);
}

class AskingTest : public EngineTest {
 protected:
  static std::string state_in(const std::string& reply) {
    const wire::Value value = decoded(reply);
    const wire::Value* state = value.find("state");
    return state == nullptr ? to_string(value) : state->text;
  }
  static std::optional<wire::ReleaseWanted> wanted_in(const std::string& reply) {
    const auto renewal = wire::read_renewal(decoded(reply));
    EXPECT_TRUE(renewal) << reply;
    return renewal ? renewal->release_wanted : std::nullopt;
  }
};

TEST_F(AskingTest, TheHolderIsToldWithItsNextRenewal) {
  Client holder = connect3(), asker = connect();
  EXPECT_EQ(state_in(asker.ask("ASK a")), "not_held");
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 60000"));
  EXPECT_FALSE(wanted_in(holder.ask("RENEW " + lease + " ASKS")));
  EXPECT_EQ(state_in(asker.ask("ASK a OWNER bob REASON deploy")), "asked");
  EXPECT_EQ(state_in(asker.ask("ASK a")), "already_asked");
  EXPECT_EQ(holder.ask("RENEW " + lease), ":60000\r\n") << "only one who wants to know is told";
  EXPECT_EQ(holder.ask("MRENEW " + lease), "*1\r\n:60000\r\n");
  const auto wanted = wanted_in(holder.ask("RENEW " + lease + " ASKS"));
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->lock, "a");
  EXPECT_EQ(wanted->by, "bob");
  EXPECT_EQ(wanted->reason, "deploy");
  const std::string other(32, '0');
  EXPECT_EQ(holder.ask("MRENEW ASKS " + lease + " " + other),
            "*2\r\n*2\r\n:60000\r\n:" + std::to_string(wanted->ask) + "\r\n:-1\r\n");
}

TEST_F(AskingTest, AnObserverIsToldAlthoughNothingIsStored) {
  Client observer = connect3(), holder = connect(), asker = connect();
  holder.ask("ACQUIRE a TTL 60000 OWNER holder");
  observer.ask("OBSERVE a");
  asker.ask("ASK a OWNER bob REASON deploy");
  turn();
  const auto event = wire::read_event(decoded(observer.take()));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, wire::EventKind::kReleaseWanted);
  EXPECT_EQ(event->lock, "a");
  EXPECT_EQ(event->token, Token{1});
  EXPECT_EQ(event->owner, "bob");
  EXPECT_EQ(event->reason, "deploy");
}

// Otherwise an observer would hear that a lock is wanted from a holder that it does not know yet.
TEST_F(AskingTest, TheEventWaitsForTheGrantBeforeIt) {
  Client observer = connect3(), holder = connect(), asker = connect();
  observer.ask("OBSERVE a");
  store.hold();
  holder.ask("ACQUIRE a TTL 60000");
  asker.ask("ASK a");
  EXPECT_EQ(observer.take(), "");
  store.release();
  turn();
  const std::string seen = observer.take();
  const auto granted = seen.find("granted"), wanted = seen.find("release_wanted");
  ASSERT_NE(granted, std::string::npos);
  ASSERT_NE(wanted, std::string::npos);
  EXPECT_LT(granted, wanted);
}

TEST_F(AskingTest, AnEmptyOwnerIsOutOfRangeAsInAcquire) {
  Client asker = connect();
  EXPECT_EQ(asker.ask("ASK a OWNER \"\""), "-ERR OWNER must be 1 to 128 bytes, got 0\r\n");
}

using AskingAccessTest = AccessTest;

TEST_F(AskingAccessTest, TheLogNamesUserAddressAndLabelAsForABreak) {
  Client holder = connect_as("boss"), asker = connect_as("worker");
  holder.ask("ACQUIRE a TTL 60000");
  holder.ask("ACQUIRE b TTL 60000");
  asker.ask("ASK a OWNER deploy REASON now");
  const std::string labelled = log.lines.back();
  EXPECT_TRUE(labelled.starts_with("ASK for 'a' by worker at ")) << labelled;
  EXPECT_TRUE(labelled.ends_with(" ('deploy'): 'now'")) << labelled;
  asker.ask("ASK b");
  EXPECT_TRUE(log.lines.back().starts_with("ASK for 'b' by worker at ")) << log.lines.back();
  EXPECT_EQ(log.lines.back().find('('), std::string::npos) << log.lines.back();
}

TEST_F(AskingAccessTest, TheUserIsNamedWhateverTheLabelSays) {
  Client holder = connect_as("boss"), asker = connect_as("worker");
  const std::string lease = lease_in(holder.ask("ACQUIRE a TTL 60000"));
  asker.ask("ASK a OWNER boss");
  EXPECT_NE(holder.ask("RENEW " + lease + " ASKS").find("worker (boss)"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
