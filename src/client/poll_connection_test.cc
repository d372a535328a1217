// PollConnection with real sockets on loopback; the test plays the server in the same thread.
#include "client/poll_connection.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <functional>

#include "client/boot_clock.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kHelloReply = "%1\r\n+server\r\n+pawl\r\n";

// A port of our own on loopback, listened to or only kept from others: then connections are
// refused.
class Port {
 public:
  enum class Does : std::uint8_t { kAccept, kRefuse };

  explicit Port(Does does = Does::kAccept, int backlog = 16)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(bind(fd_.get(), address, size), 0);
    EXPECT_EQ(getsockname(fd_.get(), address, &size), 0);
    if (does == Does::kAccept) {
      EXPECT_EQ(listen(fd_.get(), backlog), 0);
    }
  }

  [[nodiscard]] Address address() const { return {"127.0.0.1", ntohs(address_.sin_port)}; }
  [[nodiscard]] std::string name() const { return to_text(address()); }
  [[nodiscard]] bool called() const {
    pollfd fd{fd_.get(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }
  [[nodiscard]] UniqueFd accept() const {
    return UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Occupies the only place in a backlog of 0: the next connection gets no answer.
  [[nodiscard]] UniqueFd occupy() const {
    UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)), 0);
    return caller;
  }

 private:
  UniqueFd fd_;
  sockaddr_in address_{};
};

class PollConnectionTest : public testing::Test {
 protected:
  PollConnection connection(const std::vector<Address>& addresses, Millis connect_timeout = 60s) {
    auto endpoints = resolve(addresses);
    EXPECT_TRUE(endpoints);
    return {std::move(*endpoints), random, {}, connect_timeout};
  }

  // Processes, sleeping in poll as a program would, until `done`.
  static void process_until(PollConnection& pawld, const std::function<bool()>& done) {
    const Instant limit = boot_now() + 60s;
    while (!done()) {
      ASSERT_LT(boot_now(), limit) << "timed out; last error: " << pawld.machine().last_error();
      pollfd socket = pawld.interest();
      const auto left = std::min(pawld.next_timer(), boot_now() + 5ms) - boot_now();
      poll(&socket, 1, static_cast<int>(std::max<Nanos>(left, 0ns) / 1ms));
      pawld.process(socket.revents);
    }
  }
  static CallId ask(PollConnection& pawld, std::vector<std::string> words) {
    return pawld.machine().command({.words = std::move(words)}, boot_now());
  }
  // Accepts, and answers HELLO.
  static UniqueFd accept_and_greet(PollConnection& pawld, const Port& port) {
    process_until(pawld, [&] { return port.called(); });
    UniqueFd peer = port.accept();
    reply(peer, kHelloReply);
    process_until(pawld, [&] { return pawld.machine().reached(); });
    return peer;
  }
  static void reply(const UniqueFd& peer, std::string_view bytes) {
    EXPECT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  // All that has arrived.
  static std::string receive(const UniqueFd& peer) {
    std::string received;
    char buffer[65536];
    for (ssize_t got = 0; (got = ::recv(peer.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;)
      received.append(buffer, static_cast<std::size_t>(got));
    return received;
  }
  static Result<wire::Value> answer(PollConnection& pawld) {
    std::vector<Completion> done;
    process_until(pawld, [&] { return !(done = pawld.machine().take_completions()).empty(); });
    if (done.empty()) return Error{Code::kInvalid, "not complete"};
    return std::get<Result<wire::Value>>(done.front().outcome);
  }

  SeededRandom random{7};
};

TEST(PollTimeout, RoundsUpAndNeverSleepsLongerThanAMinute) {
  EXPECT_EQ(poll_timeout(1ns), 1) << "0 would be a loop that never sleeps";
  EXPECT_EQ(poll_timeout(20ms), 20);
  EXPECT_EQ(poll_timeout(0ns), 0);
  EXPECT_EQ(poll_timeout(-5s), 0);
  EXPECT_EQ(poll_timeout(24h), 60'000);
  EXPECT_EQ(poll_timeout(kNever - boot_now()), 60'000);
}

TEST_F(PollConnectionTest, WithoutACallItDoesNotConnect) {
  const Port port;
  PollConnection pawld = connection({port.address()});
  pawld.process(0);
  EXPECT_LT(pawld.interest().fd, 0);
  EXPECT_EQ(pawld.next_timer(), kNever);
  EXPECT_FALSE(port.called());
}

TEST_F(PollConnectionTest, CallIsAnswered) {
  const Port port;
  PollConnection pawld = connection({port.address()});
  ask(pawld, {"INSPECT", "disk"});
  const UniqueFd peer = accept_and_greet(pawld, port);
  std::string received;
  process_until(pawld,
                [&] { return (received += receive(peer)).find("disk") != std::string::npos; });
  reply(peer, "+fine\r\n");
  const auto reply = answer(pawld);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, "fine");
}

TEST_F(PollConnectionTest, LargeOutputIsSentInParts) {
  const Port port;
  PollConnection pawld = connection({port.address()});
  ask(pawld, {"PING"});
  const UniqueFd peer = accept_and_greet(pawld, port);
  const std::string large(16u << 20, 'x');
  ask(pawld, {"ECHO", large});
  pawld.flush();
  EXPECT_NE(pawld.interest().events & POLLOUT, 0);  // More than any socket buffer.
  std::size_t received = 0;
  process_until(pawld, [&] {
    const std::string bytes = receive(peer);
    received += static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), 'x'));
    return received == large.size();
  });
  EXPECT_EQ(pawld.interest().events & POLLOUT, 0);
}

TEST_F(PollConnectionTest, NextEndpointIsTriedAtOnce) {
  const Port refuses(Port::Does::kRefuse);
  const Port port;
  PollConnection pawld = connection({refuses.address(), port.address()});
  ask(pawld, {"PING"});
  process_until(pawld, [&] { return port.called(); });
  EXPECT_TRUE(pawld.machine().take_completions().empty());
}

TEST_F(PollConnectionTest, AllEndpointsRefusedIsUnavailableWithEachError) {
  const Port one(Port::Does::kRefuse), two(Port::Does::kRefuse);
  PollConnection pawld = connection({one.address(), two.address()});
  ask(pawld, {"PING"});
  const auto reply = answer(pawld);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kUnavailable);
  EXPECT_THAT(reply.error().detail, HasSubstr(one.name()));
  EXPECT_THAT(reply.error().detail, HasSubstr(two.name()));
}

TEST_F(PollConnectionTest, KeepRetryingBacksOffInstead) {
  const Port refuses(Port::Does::kRefuse);
  PollConnection pawld = connection({refuses.address()});
  pawld.keep_retrying();
  ask(pawld, {"PING"});
  process_until(pawld, [&] { return !pawld.machine().last_error().empty(); });
  EXPECT_TRUE(pawld.machine().take_completions().empty());
  EXPECT_LT(pawld.interest().fd, 0);
  EXPECT_NE(pawld.next_timer(), kNever);
}

TEST_F(PollConnectionTest, SilentEndpointCostsTheConnectTimeout) {
  const Port silent(Port::Does::kAccept, 0);
  const UniqueFd occupant = silent.occupy();
  const Port port;
  PollConnection pawld = connection({silent.address(), port.address()}, 20ms);
  ask(pawld, {"PING"});
  pawld.process(0);
  EXPECT_NE(pawld.next_timer(), kNever);  // Else a program would sleep past the limit.
  process_until(pawld, [&] { return port.called(); });
}

TEST_F(PollConnectionTest, CallMovesToTheNextEndpointAfterAHangUp) {
  const Port first, second;
  PollConnection pawld = connection({first.address(), second.address()});
  ask(pawld, {"INSPECT", "disk"});
  UniqueFd peer = accept_and_greet(pawld, first);
  peer.reset();
  process_until(pawld, [&] { return second.called(); });
  EXPECT_THAT(pawld.machine().last_error(), HasSubstr(first.name()));
  const UniqueFd other = second.accept();
  reply(other, kHelloReply);
  std::string received;
  process_until(pawld,
                [&] { return (received += receive(other)).find("disk") != std::string::npos; });
}

TEST_F(PollConnectionTest, StandbyIsLeftForTheActiveOneThatItNames) {
  const Port standby, other, active;
  PollConnection pawld = connection({standby.address(), other.address()});
  ask(pawld, {"INSPECT", "disk"});
  const UniqueFd peer = accept_and_greet(pawld, standby);
  reply(peer, "-READONLY active=" + active.name() + "\r\n");
  process_until(pawld, [&] { return active.called(); });
  EXPECT_FALSE(other.called()) << "it goes there at once";
  const UniqueFd second = active.accept();
  reply(second, kHelloReply);
  std::string received;
  process_until(pawld,
                [&] { return (received += receive(second)).find("disk") != std::string::npos; });
  reply(second, "+fine\r\n");
  EXPECT_TRUE(answer(pawld));
}

TEST_F(PollConnectionTest, NameOfTheActiveOneIsLookedUpInTheBackground) {
  const Port standby, active;
  PollConnection pawld = connection({standby.address()});
  pawld.keep_retrying();
  ask(pawld, {"INSPECT", "disk"});
  const UniqueFd peer = accept_and_greet(pawld, standby);
  reply(peer, "-READONLY active=localhost:" + std::to_string(active.address().port) + "\r\n");
  process_until(pawld, [&] { return active.called(); });
}

TEST_F(PollConnectionTest, ActiveOneThatCannotBeReachedDoesNotEndTheCall) {
  const Port standby, other, unreachable(Port::Does::kRefuse);
  PollConnection pawld = connection({standby.address(), other.address()});
  ask(pawld, {"INSPECT", "disk"});
  const UniqueFd peer = accept_and_greet(pawld, standby);
  reply(peer, "-READONLY active=" + unreachable.name() + "\r\n");
  process_until(pawld, [&] { return other.called(); });
  EXPECT_TRUE(pawld.machine().take_completions().empty());
}

TEST_F(PollConnectionTest, InvalidBytesEndTheConnection) {
  const Port port;
  PollConnection pawld = connection({port.address()});
  ask(pawld, {"PING"});
  process_until(pawld, [&] { return port.called(); });
  const UniqueFd peer = port.accept();
  reply(peer, "HTTP/1.1 400 Bad Request\r\n\r\n");
  process_until(pawld, [&] { return pawld.interest().fd < 0; });
  EXPECT_FALSE(pawld.machine().reached());
  EXPECT_THAT(pawld.machine().last_error(), HasSubstr("not RESP"));
}

TEST(Resolve, EndpointsHaveTheNameAsWritten) {
  const auto endpoints = resolve({{"127.0.0.1", 1}, {"::1", 2}});
  ASSERT_TRUE(endpoints);
  ASSERT_EQ(endpoints->size(), 2u);
  EXPECT_EQ(endpoints->front().name, "127.0.0.1:1");
  EXPECT_EQ(endpoints->back().address.ss_family, AF_INET6);
}

TEST(Resolve, UnresolvableNamesAreSkippedUnlessAll) {
  const std::string unresolvable(300, 'x');  // Longer than a name can be: no resolver is asked.
  const auto some = resolve({{unresolvable, 1}, {"127.0.0.1", 2}});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->size(), 1u);
  const auto none = resolve({{unresolvable, 1}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUnavailable);
  EXPECT_THAT(none.error().detail, HasSubstr(unresolvable));
}

}  // namespace
}  // namespace pawl::client
