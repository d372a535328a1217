// libpawl over TLS, against the real pawld.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/testlib/temp_directory.h"
#include "libpawl_fixture.h"
#include "tls/testlib/test_certificates.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Certificates in a directory of its own, and a pawld that has one.
class TlsLibrary : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    return tls::write_file(dir_, name, text);
  }
  // pawld's pair, by this authority.
  void install(const tls::TestCertificate& authority) const {
    const tls::TestCertificate made =
        tls::make_signed(authority, {.name = "pawld", .hosts = {"localhost", "127.0.0.1"}});
    file("server.pem", made.certificate_pem);
    file("server.key", made.key_pem);
  }
  std::string settings() const {
    install(authority_);
    return "[tls]\ncert = \"" + dir_ + "/server.pem\"\nkey = \"" + dir_ + "/server.key\"\n";
  }
  const TempDirectory temp_;
  const std::string& dir_ = temp_.path();
  const tls::TestCertificate authority_ = tls::make_authority("authority");
  const tls::TestCertificate next_ = tls::make_authority("next authority");
  const std::string ca_ = file("ca.pem", authority_.certificate_pem);
  const std::string next_ca_ = file("next.pem", next_.certificate_pem);
  PawldProcess pawld_{settings()};
  const std::string address_ = "tls://" + pawld_.address();
};

TEST_F(TlsLibrary, LeaseIsAcquiredRenewedAndReleased) {
  Client client(address_, {.tls = {.ca_file = ca_}});
  auto lease = client.acquire("tls", {.ttl = 30s});
  ASSERT_TRUE(lease) << lease.error().detail;
  EXPECT_FALSE(client.acquire("tls"));
  EXPECT_TRUE(lease->release());
  EXPECT_TRUE(client.acquire("tls"));
}

TEST_F(TlsLibrary, ThreadsShareOneConnection) {
  Client client(address_, {.tls = {.ca_file = ca_}});
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        auto lease = client.acquire("tls/" + std::to_string(t));
        if (lease && lease->release()) ++granted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 400);
}

TEST_F(TlsLibrary, FiftyLeasesSurviveARotatedCertificate) {
  std::atomic<int> renewals = 0;
  const auto count = [&](std::string_view counter, double added) {
    if (counter == "renewals") renewals += static_cast<int>(added);
  };
  Client client(address_, {.tls = {.ca_file = ca_}, .metric = count});
  std::vector<Lease> leases;
  for (int i = 0; i < 50; ++i) {
    auto lease = client.acquire("rotate/" + std::to_string(i), {.ttl = 3s});
    ASSERT_TRUE(lease) << lease.error().detail;
    leases.push_back(*std::move(lease));
  }
  install(next_);
  pawld_.reload();
  ASSERT_TRUE(
      eventually([&] { return pawld_.log().find("new connections use") != std::string::npos; }));
  const int before = renewals;
  EXPECT_TRUE(eventually([&] { return renewals >= before + 100; }));
  for (const Lease& lease : leases) EXPECT_FALSE(lease.lost().stop_requested());

  Client old(address_, {.call_timeout = 3s, .tls = {.ca_file = ca_}});
  const auto refused = old.acquire("other");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().detail, HasSubstr("unknown authority: CN=next authority"));
  Client fresh(address_, {.tls = {.ca_file = next_ca_}});
  EXPECT_TRUE(fresh.acquire("other"));
}

TEST_F(TlsLibrary, LeaseSurvivesAReconnectWithAnotherCertificate) {
  // Trusts both authorities, as one does while certificates are changed.
  const std::string both = file("both.pem", authority_.certificate_pem + next_.certificate_pem);
  Client client(address_, {.tls = {.ca_file = both}});
  const auto lease = client.acquire("held", {.ttl = 30s});
  ASSERT_TRUE(lease) << lease.error().detail;
  install(next_);
  pawld_.kill();
  pawld_.start_again();
  const auto again = client.acquire("after");
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_FALSE(lease->lost().stop_requested());
}

TEST_F(TlsLibrary, FirstCallReportsUnusableFiles) {
  Client client(address_, {.tls = {.ca_file = "no/such.pem"}});
  const auto refused = client.acquire("x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().detail, HasSubstr("no/such.pem: cannot be read"));
}

TEST_F(TlsLibrary, ExpectedServerNameCanBeSet) {
  Client other(address_, {.call_timeout = 3s, .tls = {.ca_file = ca_, .server_name = "db7"}});
  const auto refused = other.acquire("x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("is for localhost, 127.0.0.1, not for db7"));
  Client client(address_, {.tls = {.ca_file = ca_, .server_name = "localhost"}});
  EXPECT_TRUE(client.acquire("x"));
}

}  // namespace
}  // namespace pawl
