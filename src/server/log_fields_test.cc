// Log lines about a client have the same fields, so that a program can follow it: `event`,
// `address` and, where it is known, `user`.
#include <map>

#include "server/testlib/access_fixture.h"

namespace pawl::server {
namespace {

struct FieldLog final : Log {
  void write(LogLevel /*level*/, std::string_view /*line*/) override { lines.emplace_back(); }
  void write_with(LogLevel /*level*/, std::string_view /*line*/, LogFields fields) override {
    auto& line = lines.emplace_back();
    for (const LogField& field : fields) line.emplace(field.name, field.text);
  }
  std::vector<std::map<std::string, std::string, std::less<>>> lines;
};

class LogFieldsTest : public AccessTest {
 protected:
  void SetUp() override {
    engine_with_fields.emplace(
        settings, EngineParts{store, clock, random, network, fields, [](const Error&) {}});
    ASSERT_TRUE(engine_with_fields->load());
    engine_with_fields->set_users(Users(everyone()));
  }
  // A connection of HTTP, as the user, that sends this.
  void send(std::string_view user, std::string_view bytes) {
    const ConnectionId id{++last};
    ASSERT_TRUE(engine_with_fields->connected(id, "http:10.0.0.7:4711", user));
    engine_with_fields->received(id, bytes);
    engine_with_fields->run_turn();
  }
  void expect_line(const std::string& event, const std::string& user) {
    ASSERT_FALSE(fields.lines.empty()) << event;
    const auto line = std::exchange(fields.lines, {}).back();
    EXPECT_EQ(line.at("event"), event);
    EXPECT_EQ(line.at("address"), "10.0.0.7:4711") << event;
    EXPECT_EQ(line.at("user"), user) << event;
    EXPECT_FALSE(line.contains("by")) << event;
  }

  FieldLog fields;
  std::optional<Engine> engine_with_fields;
  std::uint64_t last = 50;
};

TEST_F(LogFieldsTest, EveryLineAboutAClientHasEventUserAndAddress) {
  send("", "*1\r\nnonsense\r\n");
  expect_line("protocol_error", "");
  send("", "AUTH boss guess\r\n");
  expect_line("wrong_secret", "boss");
  send("boss", "BREAK a TOKEN 9 REASON gone\r\n");
  expect_line("break_without_effect", "boss");
  send("boss", "RAISE 5000 REASON restored\r\n");
  expect_line("raise", "boss");
  send("copier", "BACKUP /backups/one\r\n");
  expect_line("backup_failed", "copier");
  send("worker", "PING\r\n");
  engine_with_fields->set_users(Users({user("worker", wire::Access::kObserve)}));
  expect_line("user_changed", "worker");
}

}  // namespace
}  // namespace pawl::server
