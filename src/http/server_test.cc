// Peers that do not behave, with time limits short enough to wait for. How long a limit is, is
// nowhere compared.
#include "http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <mutex>
#include <vector>

#include "tls/testlib/test_certificates.h"

namespace pawl::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class KeptLog final : public Log {
 public:
  void write(LogLevel, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    lines_ += std::string(line) + "\n";
  }
  std::string lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::string lines_;
};

class HttpServerTest : public testing::Test {
 protected:
  void start(Server::Handler handler, Server::Bounds bounds) {
    UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener.get(), 16), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
    server_ = std::make_unique<Server>(log_, std::move(handler), bounds);
    ASSERT_TRUE(server_->start(std::move(listener)));
  }
  // A peer that has sent `text`.
  UniqueFd peer(std::string_view text) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return socket;
  }
  // Up to the end, or until `enough` has been seen.
  static std::string received(const UniqueFd& socket, std::string_view enough = "") {
    std::string text;
    char buffer[4096];
    while (enough.empty() || text.find(enough) == std::string::npos) {
      const ssize_t count = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

  static void say_hello(const std::shared_ptr<Exchange>& exchange) {
    exchange->answer({200, "text/plain", "hello " + exchange->request().target});
  }
  static constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
  static constexpr Millis kShort{50};

  KeptLog log_;
  sockaddr_in address_{};
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServerTest, AnIdleConnectionIsClosedAfterItsAnswer) {
  start(say_hello, {.idle = kShort});
  EXPECT_THAT(received(peer(kGet)), HasSubstr("hello /x"));
  EXPECT_EQ(received(peer("")), "");
}

TEST_F(HttpServerTest, AnIncompleteRequestIs408) {
  start(say_hello, {.request = kShort});
  EXPECT_THAT(received(peer(kGet.substr(0, 20))), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(received(peer("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")),
              StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, ASilentStrangerMakesRoomForTheNextOne) {
  start(say_hello, {.newcomers = 1});
  const UniqueFd silent = peer("");
  const UniqueFd half = peer(kGet.substr(0, 20));
  EXPECT_EQ(received(silent), "") << "closed";
  EXPECT_THAT(received(peer(kGet), "hello"), HasSubstr("hello"));
  EXPECT_EQ(received(half), "") << "half a request is no better";
  EXPECT_EQ(server_->usage().displaced, 2U);
}

TEST_F(HttpServerTest, ClientsThatAreAdmittedKeepTheirConnections) {
  start(
      [](const std::shared_ptr<Exchange>& exchange) {
        (void)exchange->admit();
        say_hello(exchange);
      },
      {.connections = 2, .newcomers = 1, .authenticate = kShort});
  const UniqueFd first = peer(kGet), second = peer("");
  EXPECT_THAT(received(first, "hello"), HasSubstr("hello"));
  EXPECT_EQ(received(second), "") << "a silent stranger is closed in time";
  ASSERT_EQ(::send(first.get(), kGet.data(), kGet.size(), 0), static_cast<ssize_t>(kGet.size()));
  EXPECT_THAT(received(first, "hello"), HasSubstr("hello"));
}

TEST_F(HttpServerTest, BeyondTheOrdinaryPlacesOnlyRenewalsAreAdmittedAndThenNothing) {
  std::vector<std::shared_ptr<Exchange>> under_way;
  std::array<std::promise<Admission>, 3> admitted;
  start(
      [&](std::shared_ptr<Exchange> exchange) {
        const Admission admission = exchange->admit();
        if (admission == Admission::kNone) exchange->answer({200, "text/plain", "none"});
        under_way.push_back(std::move(exchange));
        admitted[under_way.size() - 1].set_value(admission);
      },
      {.connections = 1, .reserved = 1});
  const UniqueFd first = peer(kGet);
  EXPECT_EQ(admitted[0].get_future().get(), Admission::kAll);
  const UniqueFd second = peer(kGet);
  EXPECT_EQ(admitted[1].get_future().get(), Admission::kRenewals);
  EXPECT_THAT(received(peer(kGet)), HasSubstr("none")) << "and it is closed";
  EXPECT_EQ(admitted[2].get_future().get(), Admission::kNone);
  EXPECT_EQ(server_->usage().refused, 1U);
  server_->stop();
  under_way.clear();
}

TEST_F(HttpServerTest, AStrangerThatTalksIsClosedInTime) {
  start(say_hello, {.authenticate = kShort});
  const UniqueFd talker = peer("");
  std::string answers;
  while (answers.find("Connection: close") == std::string::npos) {
    if (::send(talker.get(), kGet.data(), kGet.size(), MSG_NOSIGNAL) <= 0) break;
    const std::string answer = received(talker, "hello /x");
    if (answer.empty()) break;
    answers += answer;
  }
  EXPECT_EQ(received(talker), "") << "closed";
}

TEST_F(HttpServerTest, AQuietStreamSendsKeepAlives) {
  std::shared_ptr<Exchange> kept;
  start(
      [&](std::shared_ptr<Exchange> exchange) {
        kept = std::move(exchange);
        kept->begin_stream({200, "text/event-stream", "begun\n"}, ": quiet\n");
        kept->write("event\n");
      },
      {.quiet = kShort});
  const UniqueFd reader = peer(kGet);
  EXPECT_THAT(received(reader, ": quiet\n: quiet\n"), HasSubstr("begun\nevent\n: quiet\n"));
  server_->stop();
  kept.reset();
}

TEST_F(HttpServerTest, AStreamThatIsNotReadIsClosedAndReported) {
  std::shared_ptr<Exchange> kept;
  std::promise<Gone> gone;
  start(
      [&](std::shared_ptr<Exchange> exchange) {
        kept = std::move(exchange);
        kept->on_gone = [&](Gone how) { gone.set_value(how); };
        kept->begin_stream({200, "text/event-stream", ""}, ": quiet\n");
        kept->write(std::string(64 << 20, 'x'));  // More than any socket takes.
      },
      {.write = kShort});
  const UniqueFd reader = peer(kGet);
  EXPECT_EQ(gone.get_future().get(), Gone::kClosed);
  EXPECT_THAT(log_.lines(), HasSubstr("reads its stream too slowly"));
  server_->stop();
  kept.reset();
}

TEST_F(HttpServerTest, AHangUpIsReportedAndALateAnswerIsHarmless) {
  std::shared_ptr<Exchange> kept;
  std::promise<Gone> silent;
  start(
      [&](std::shared_ptr<Exchange> exchange) {
        kept = std::move(exchange);
        kept->on_gone = [&](Gone how) {
          if (how == Gone::kSilent) silent.set_value(how);
        };
      },
      {});
  UniqueFd waiting = peer(kGet);
  waiting.reset();
  EXPECT_EQ(silent.get_future().get(), Gone::kSilent);
  std::promise<void> answered;
  server_->post([&] {
    kept->answer({200, "text/plain", "too late"});
    kept->answer({200, "text/plain", "and once more"});
    kept.reset();
    answered.set_value();
  });
  answered.get_future().get();
  server_->stop();
}

TEST_F(HttpServerTest, AHalfClosedConnectionGetsItsAnswer) {
  std::shared_ptr<Exchange> kept;
  std::promise<void> silent;
  start(
      [&](std::shared_ptr<Exchange> exchange) {
        kept = std::move(exchange);
        kept->on_gone = [&](Gone how) {
          if (how == Gone::kSilent) silent.set_value();
        };
      },
      {});
  const UniqueFd waiting = peer(kGet);
  ::shutdown(waiting.get(), SHUT_WR);
  silent.get_future().get();
  server_->post([&] {
    kept->answer({200, "text/plain", "still there"});
    kept.reset();
  });
  EXPECT_THAT(received(waiting), HasSubstr("still there"));
  server_->stop();
}

class HttpsServerTest : public HttpServerTest {
 protected:
  void start_tls(Server::Bounds bounds) {
    start(say_hello, bounds);
    const tls::TestCertificate authority = tls::make_authority("test authority");
    const tls::TestCertificate own =
        tls::make_signed(authority, {.name = "pawld", .hosts = {"localhost"}});
    const std::string dir = testing::TempDir();
    const auto context = tls::ServerContext::load(
        {.cert = tls::write_file(dir, "http_test.pem", own.certificate_pem),
         .key = tls::write_file(dir, "http_test.key", own.key_pem)});
    ASSERT_TRUE(context);
    server_->use_tls(*context);
    std::promise<void> in_use;
    server_->post([&] { in_use.set_value(); });
    in_use.get_future().get();
  }
};

TEST_F(HttpsServerTest, AClientWithoutTlsIsToldToUseHttps) {
  start_tls({});
  const std::string answer = received(peer(kGet));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(answer, HasSubstr("\"code\":\"tls_required\""));
  EXPECT_THAT(log_.lines(), HasSubstr("failed: the client does not speak TLS"));
}

TEST_F(HttpsServerTest, AStalledHandshakeTimesOutAndFreesItsSlot) {
  start_tls({.newcomers = 1, .handshake = kShort});
  for (const std::string_view begun : {"", "\x16\x03\x01"}) {
    const UniqueFd silent = peer(begun);
    EXPECT_EQ(received(silent), "");
  }
  EXPECT_THAT(log_.lines(), HasSubstr("failed: not finished in time"));
  while (received(peer(kGet)).find("tls_required") == std::string::npos) {
  }
}

}  // namespace
}  // namespace pawl::http
