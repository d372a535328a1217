#include "client/address.h"

#include <gtest/gtest.h>

namespace pawl::client {
namespace {

TEST(Address, HostAloneGetsTheDefaultPort) {
  EXPECT_EQ(*parse_addresses("db1"), (std::vector<Address>{{"db1", 7295}}));
  EXPECT_EQ(*parse_addresses("[::1]"), (std::vector<Address>{{"::1", 7295}}));
}

TEST(Address, ListKeepsItsOrder) {
  EXPECT_EQ(*parse_addresses("db1:1, db2 ,[fe80::1]:65535"),
            (std::vector<Address>{{"db1", 1}, {"db2", 7295}, {"fe80::1", 65535}}));
}

TEST(Address, MalformedAddressIsRefusedWithAHint) {
  for (const char* text : {"", ":7295", "a,", ",a", "a:", "a:0", "a:65536", "a:-1", "a:7295x",
                           "[::1", "[]:1", "[::1]7295"}) {
    const auto parsed = parse_addresses(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
  EXPECT_NE(parse_addresses("::1:7295").error().detail.find("[::1]:7295"), std::string::npos);
}

TEST(Address, TextParsesBack) {
  for (const Address& address :
       {Address{"db1", 7}, Address{"::1", 7295}, Address{"db1", 7, true}}) {
    EXPECT_EQ(parse_addresses(to_text(address))->front(), address);
  }
}

TEST(Addresses, TlsIsWrittenBeforeTheHost) {
  EXPECT_EQ(*parse_addresses("tls://db1:1,tls://[::1]"),
            (std::vector<Address>{{"db1", 1, true}, {"::1", kDefaultPort, true}}));
  for (const char* wrong : {"tls://", "tls://tls://db1", "https://db1", "redis://db1:7295"}) {
    EXPECT_FALSE(parse_addresses(wrong)) << wrong;
  }
}

TEST(Addresses, MixedTlsListIsRefused) {
  EXPECT_FALSE(parse_addresses("tls://db1,db2"));
  EXPECT_NE(parse_addresses("db1,tls://db2").error().detail.find("all addresses"),
            std::string::npos);
}

TEST(Addresses, TlsFilesAreReadOnlyWhenNeeded) {
  const tls::ClientFiles missing{.ca = "no/such.pem"};
  auto plain = *parse_addresses("db1");
  EXPECT_TRUE(use_tls(plain, missing));
  EXPECT_EQ(plain.front().context, nullptr);
  auto secure = *parse_addresses("tls://db1");
  EXPECT_EQ(use_tls(secure, missing).error().detail.find("no/such.pem: cannot be read"), 0U);
  EXPECT_TRUE(use_tls(secure, {}));
  EXPECT_NE(secure.front().context, nullptr);
}

}  // namespace
}  // namespace pawl::client
