#include "server/session.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

struct SessionTest : testing::Test {
  // Serves everything there is by echoing the first argument's name.
  std::vector<std::string> commands() {
    std::vector<std::string> all;
    while (const auto args = session.next_command()) {
      std::string line;
      for (const std::string_view arg : *args) line += (line.empty() ? "" : " ") + std::string(arg);
      all.push_back(line);
    }
    return all;
  }
  std::string ready(std::uint64_t durable) {
    return std::string(session.outbox().ready(BatchId{durable}));
  }
  Session session{ConnectionId{1}, "test"};
};

using Lines = std::vector<std::string>;

TEST_F(SessionTest, PipelinedCommandsComeOutOneByOneInOrder) {
  session.receive("PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n\r\nTIME\r\n");
  EXPECT_EQ(commands(), (Lines{"PING", "ECHO x", "TIME"}));
}

TEST_F(SessionTest, ACommandSplitAtEveryByteIsTheSameCommand) {
  for (const char byte : std::string("*2\r\n$4\r\nECHO\r\n$5\r\nh\r\nlo\r\n")) {
    EXPECT_TRUE(commands().empty());
    session.receive({&byte, 1});
  }
  EXPECT_EQ(commands(), (Lines{"ECHO h\r\nlo"}));
}

TEST_F(SessionTest, NothingIsServedWhileAWaitBlocksIt) {
  session.receive("A\r\nB\r\n");
  ASSERT_TRUE(session.next_command());
  session.blocked = true;
  EXPECT_FALSE(session.next_command());
  session.receive("C\r\n");
  EXPECT_FALSE(session.next_command());
  session.blocked = false;
  EXPECT_EQ(commands(), (Lines{"B", "C"}));
}

TEST_F(SessionTest, InputThatIsNotServedIsWelcomeOnlyUpToABound) {
  session.blocked = true;
  std::size_t sent = 0;
  for (; session.wants_input(); sent += 1000) session.receive(std::string(1000, 'x'));
  EXPECT_LT(sent, 2 * limits::kBehindWaitMax);
}

TEST_F(SessionTest, AClientThatDoesNotReadIsNotServedFurther) {
  session.receive("A\r\nB\r\n");
  ASSERT_TRUE(session.next_command());
  session.reply().bulk(std::string(Session::kOutputPause, 'x'));
  session.seal(BatchId{});
  EXPECT_FALSE(session.next_command());
  session.outbox().sent(ready(0).size());
  EXPECT_EQ(commands(), (Lines{"B"}));
}

TEST_F(SessionTest, AProtocolErrorIsAnsweredBehindEarlierRepliesAndEndsIt) {
  session.receive("A\r\n*1\r\n!\r\n");
  ASSERT_TRUE(session.next_command());
  session.reply().ok();
  session.seal(BatchId{3});
  EXPECT_FALSE(session.next_command());
  EXPECT_TRUE(session.closing);
  EXPECT_EQ(ready(2), "");
  EXPECT_EQ(ready(3).substr(0, 9), "+OK\r\n-ERR");
}

}  // namespace
}  // namespace pawl::server
