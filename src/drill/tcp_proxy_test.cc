#include "drill/tcp_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>

namespace pawl::drill {
namespace {

// One listener that stands for the server, one connection through the proxy, and a loop that serves
// it while something is awaited.
class TcpProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any = loopback(0);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
    sockaddr_in at{};
    socklen_t size = sizeof(at);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    auto opened = TcpProxy::open({{.host = "127.0.0.1", .port = ntohs(at.sin_port)}});
    ASSERT_TRUE(opened) << opened.error().detail;
    proxy_ = *std::move(opened);
    client_ = connect();
    serve_until([&] { return readable(listener_.get()); });
    server_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  UniqueFd connect() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in at = loopback(proxy_->port());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    return fd;
  }

  static bool readable(int fd) {
    pollfd ready{fd, POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0;
  }

  void serve_once(int timeout_ms) {
    std::vector<pollfd> wanted = proxy_->interest();
    ::poll(wanted.data(), wanted.size(), timeout_ms);
    proxy_->on_ready(wanted);
  }

  void serve_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 10'000 && !holds(); ++i) serve_once(1);
    EXPECT_TRUE(holds());
  }
  // Long enough for everything that may pass to have passed.
  void settle() {
    for (int i = 0; i < 20; ++i) serve_once(1);
  }

  static void send(const UniqueFd& to, const std::string& text) {
    EXPECT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  static std::string receive(const UniqueFd& from) {
    std::string text(64, '\0');
    const ssize_t got = ::recv(from.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  UniqueFd listener_;
  std::unique_ptr<TcpProxy> proxy_;
  UniqueFd client_, server_;
};

TEST_F(TcpProxyTest, ForwardsBothDirections) {
  send(client_, "ask");
  serve_until([&] { return readable(server_.get()); });
  EXPECT_EQ(receive(server_), "ask");
  send(server_, "answer");
  serve_until([&] { return readable(client_.get()); });
  EXPECT_EQ(receive(client_), "answer");
}

TEST_F(TcpProxyTest, DeliversWhatWasSentDuringACutAfterwards) {
  proxy_->cut(Cut::kBoth);
  send(client_, "one ");
  send(server_, "answer");
  settle();
  send(client_, "two");
  settle();
  EXPECT_FALSE(readable(server_.get()));
  EXPECT_FALSE(readable(client_.get()));
  proxy_->cut(Cut::kNone);
  serve_until([&] { return readable(server_.get()) && readable(client_.get()); });
  EXPECT_EQ(receive(server_), "one two");
  EXPECT_EQ(receive(client_), "answer");
}

TEST_F(TcpProxyTest, ACutInOneDirectionLeavesTheOtherOpen) {
  for (const Cut cut : {Cut::kToServer, Cut::kFromServer}) {
    proxy_->cut(cut);
    const bool to_server = cut == Cut::kFromServer;
    send(client_, "ask");
    send(server_, "answer");
    serve_until([&] { return readable(to_server ? server_.get() : client_.get()); });
    settle();
    EXPECT_FALSE(readable(to_server ? client_.get() : server_.get()));
    proxy_->cut(Cut::kNone);
    serve_until([&] { return readable(server_.get()) && readable(client_.get()); });
    EXPECT_EQ(receive(server_), "ask");
    EXPECT_EQ(receive(client_), "answer");
  }
}

TEST_F(TcpProxyTest, AHangUpDuringACutIsSeenAfterwards) {
  proxy_->cut(Cut::kBoth);
  send(client_, "last words");
  client_.reset();
  settle();
  EXPECT_FALSE(readable(server_.get()));
  proxy_->cut(Cut::kNone);
  serve_until([&] { return readable(server_.get()); });
  EXPECT_EQ(receive(server_), "last words");
  serve_until([&] { return readable(server_.get()); });
  EXPECT_EQ(receive(server_), "");
}

TEST_F(TcpProxyTest, AConnectionMadeDuringACutIsSilent) {
  proxy_->cut(Cut::kBoth);
  const UniqueFd late = connect();
  send(late, "hello");
  settle();
  EXPECT_FALSE(readable(late.get()));
  const UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_FALSE(readable(accepted.get()));
}

TEST_F(TcpProxyTest, SilencedConnectionsStayOpenAndNewOnesWork) {
  proxy_->silence_connections();
  send(client_, "lost");
  settle();
  EXPECT_FALSE(readable(server_.get()));
  EXPECT_FALSE(readable(client_.get()));
  const UniqueFd fresh = connect();
  send(fresh, "hello");
  serve_until([&] { return readable(listener_.get()); });
  const UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  serve_until([&] { return readable(accepted.get()); });
  EXPECT_EQ(receive(accepted), "hello");
}

TEST_F(TcpProxyTest, CloseAtRequestKeepsItFromTheServer) {
  proxy_->close_at(CloseAt::kRequest, "COMMIT");
  send(client_, "BEGIN");
  serve_until([&] { return readable(server_.get()); });
  EXPECT_EQ(receive(server_), "BEGIN");
  send(client_, "COMMIT");
  serve_until([&] { return readable(client_.get()) && readable(server_.get()); });
  EXPECT_EQ(receive(client_), "");
  EXPECT_EQ(receive(server_), "");
}

TEST_F(TcpProxyTest, CloseAtReplyForwardsTheRequestAndDropsTheReply) {
  proxy_->close_at(CloseAt::kReply, "COMMIT");
  send(client_, "COMMIT");
  serve_until([&] { return readable(server_.get()); });
  EXPECT_EQ(receive(server_), "COMMIT");
  send(server_, "done");
  serve_until([&] { return readable(client_.get()); });
  EXPECT_EQ(receive(client_), "");
}

}  // namespace
}  // namespace pawl::drill
