// libpawl and several pawld, of which one is active: a standby that names it, an active one that is
// lost, and one that falls silent. The nodes are proxies to one pawld, whose leases therefore
// survive, as those of a shared store do.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "drill/testlib/threaded_proxy.h"
#include "e2e/libpawl_fixture.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

// A pawld that stands by, as a client sees it. One connection at a time.
class Standby {
 public:
  explicit Standby(std::string reply)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), reply_(std::move(reply)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (::bind(listener_.get(), address, size) != 0 ||
        ::getsockname(listener_.get(), address, &size) != 0 || ::listen(listener_.get(), 16) != 0)
      throw std::runtime_error("no port");
    thread_ = std::jthread([this] {
      while (const UniqueFd client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)})
        serve(client);
    });
  }
  ~Standby() { ::shutdown(listener_.get(), SHUT_RDWR); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  }

 private:
  // HELLO is the first thing that libpawl sends, and nothing else before its answer.
  void serve(const UniqueFd& client) const {
    std::string answer = "%1\r\n+server\r\n+pawl\r\n";
    char bytes[65536];
    while (::recv(client.get(), bytes, sizeof(bytes), 0) > 0) {
      if (::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
      answer = "-READONLY " + reply_ + "\r\n";
    }
  }

  const UniqueFd listener_;
  const std::string reply_;
  sockaddr_in address_{};
  std::jthread thread_;
};

TEST_F(LibPawl, ActiveOneIsFoundFromAStandbyAlone) {
  const Standby standby("active=" + pawld.address() + " http=127.0.0.1:1");
  Client client(standby.address());
  const Lease lease = take(client, "a", {.ttl = 60s});
  EXPECT_TRUE(lease.check());
}

TEST_F(LibPawl, StandbyThatKnowsOfNoneIsSkipped) {
  const Standby standby("this pawld stands by, and which one is active is not known yet");
  Client client(standby.address() + "," + pawld.address());
  const Lease lease = take(client, "a", {.ttl = 60s});
  EXPECT_TRUE(lease.check());
}

TEST_F(LibPawl, LeaseAndWaitSurviveTheLossOfTheirNode) {
  auto first = std::make_unique<drill::ThreadedProxy>(pawld.port());
  const drill::ThreadedProxy second(pawld.port());
  Client client(first->address() + "," + second.address());
  Client other(pawld.address());
  StateRecord record;
  const Lease lease = take(client, "a", {.ttl = 9s, .on_change = record.listener()});
  Lease held = take(other, "b", {.ttl = 60s});
  std::promise<Result<Lease>> waited;
  client.acquire_async({"b"}, {.ttl = 60s, .wait = 10min},
                       [&](Result<Lease> got) { waited.set_value(std::move(got)); });
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; }));
  first.reset();
  EXPECT_TRUE(renewed(lease, 2));
  EXPECT_FALSE(record.has(LeaseState::kUncertain));
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; })) << "it waits again";
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(waited.get_future().get());
}

// Its kernel still accepts, and a wait is on the connection: until an answer is overdue for 4 s the
// connection is kept for the sake of its place in the queue, unless another one is active.
TEST_F(LibPawl, LeaseSurvivesANodeThatFallsSilentWhileAnotherServes) {
  drill::ThreadedProxy first(pawld.port());
  const drill::ThreadedProxy second(pawld.port());
  Client client(first.address() + "," + second.address());
  Client other(pawld.address());
  StateRecord record;
  const Lease lease = take(client, "a", {.ttl = 9s, .on_change = record.listener()});
  const Lease held = take(other, "b", {.ttl = 60s});
  client.acquire_async({"b"}, {.ttl = 60s, .wait = 10min}, [](Result<Lease>) {});
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; }));
  first.cut(drill::Cut::kBoth);
  EXPECT_TRUE(renewed(lease, 2));
  EXPECT_FALSE(record.has(LeaseState::kUncertain));
}

// All of them stand by: nothing is confirmed, so the lease is lost in time.
TEST_F(LibPawl, LeaseIsLostInTimeWhenNoneBecomesActive) {
  auto first = std::make_unique<drill::ThreadedProxy>(pawld.port());
  const Standby second("this pawld stands by, and which one is active is not known yet");
  Client client(first->address() + "," + second.address());
  const Lease lease = take(client, "a", {.ttl = 2s});
  const std::stop_token lost = lease.lost();
  first.reset();
  ASSERT_TRUE(eventually([&] { return lost.stop_requested(); }));
  Client other(pawld.address());
  EXPECT_FALSE(lease.check());
  EXPECT_TRUE(other.acquire("a", {.ttl = 60s, .wait = 1min}));
}

}  // namespace
}  // namespace pawl
