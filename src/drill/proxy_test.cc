#include "drill/proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>

namespace pawl::drill {
namespace {

// One listener that stands for pawld, one connection through the proxy, and a loop that serves it
// while something is awaited.
class ProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any = loopback(0);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
    sockaddr_in at{};
    socklen_t size = sizeof(at);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    auto opened = Proxy::open({{.host = "127.0.0.1", .port = ntohs(at.sin_port)}});
    ASSERT_TRUE(opened) << opened.error().detail;
    proxy_ = *std::move(opened);
    worker_ = connect();
    serve([&] { return readable(listener_.get()); });
    pawld_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
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
    const std::string address = proxy_->address();
    const sockaddr_in at =
        loopback(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    return fd;
  }

  static bool readable(int fd) {
    pollfd ready{fd, POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0;
  }

  void turn(int timeout_ms) {
    std::vector<pollfd> wanted = proxy_->interest();
    ::poll(wanted.data(), wanted.size(), timeout_ms);
    proxy_->turn(wanted);
  }

  void serve(const std::function<bool()>& holds) {
    for (int i = 0; i < 10'000 && !holds(); ++i) turn(1);
    EXPECT_TRUE(holds());
  }
  // Until nothing is left to do: what passes has passed, what does not stays.
  void settle() {
    for (int i = 0; i < 20; ++i) turn(1);
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
  std::unique_ptr<Proxy> proxy_;
  UniqueFd worker_, pawld_;
};

TEST_F(ProxyTest, PassesWhatEitherEndSays) {
  send(worker_, "ask");
  serve([&] { return readable(pawld_.get()); });
  EXPECT_EQ(receive(pawld_), "ask");
  send(pawld_, "answer");
  serve([&] { return readable(worker_.get()); });
  EXPECT_EQ(receive(worker_), "answer");
}

TEST_F(ProxyTest, WhileItIsCutNothingPassesAndThenAllOfIt) {
  proxy_->cut(Cut::kBoth);
  send(worker_, "one ");
  send(pawld_, "answer");
  settle();
  send(worker_, "two");
  settle();
  EXPECT_FALSE(readable(pawld_.get()));
  EXPECT_FALSE(readable(worker_.get()));
  proxy_->cut(Cut::kNone);
  serve([&] { return readable(pawld_.get()) && readable(worker_.get()); });
  EXPECT_EQ(receive(pawld_), "one two");
  EXPECT_EQ(receive(worker_), "answer");
}

TEST_F(ProxyTest, CutInOneDirectionItPassesTheOther) {
  for (const Cut cut : {Cut::kToPawld, Cut::kFromPawld}) {
    proxy_->cut(cut);
    const bool to_pawld = cut == Cut::kFromPawld;
    send(worker_, "ask");
    send(pawld_, "answer");
    serve([&] { return readable(to_pawld ? pawld_.get() : worker_.get()); });
    settle();
    EXPECT_FALSE(readable(to_pawld ? worker_.get() : pawld_.get()));
    proxy_->cut(Cut::kNone);
    serve([&] { return readable(pawld_.get()) && readable(worker_.get()); });
    EXPECT_EQ(receive(pawld_), "ask");
    EXPECT_EQ(receive(worker_), "answer");
  }
}

TEST_F(ProxyTest, AHangUpIsToldOnOnlyWhenItIsNotCut) {
  proxy_->cut(Cut::kBoth);
  send(worker_, "last words");
  worker_.reset();
  settle();
  EXPECT_FALSE(readable(pawld_.get()));
  proxy_->cut(Cut::kNone);
  serve([&] { return readable(pawld_.get()); });
  EXPECT_EQ(receive(pawld_), "last words");
  serve([&] { return readable(pawld_.get()); });
  EXPECT_EQ(receive(pawld_), "");
}

TEST_F(ProxyTest, AWorkerThatConnectsWhileItIsCutHearsNothing) {
  proxy_->cut(Cut::kBoth);
  const UniqueFd late = connect();
  send(late, "hello");
  settle();
  EXPECT_FALSE(readable(late.get()));
  const UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_FALSE(readable(accepted.get()));
}

}  // namespace
}  // namespace pawl::drill
