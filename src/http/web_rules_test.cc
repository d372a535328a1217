#include "http/web_rules.h"

#include <gtest/gtest.h>

namespace pawl::http {
namespace {

std::string refused(std::vector<Header> headers, std::vector<std::string> hosts = {},
                    std::string method = "POST") {
  const Request request{std::move(method), "/v1/status", std::move(headers), "", "127.0.0.1:1"};
  auto problem = refuse_host(request, hosts);
  if (!problem) problem = refuse_origin(request);
  return problem ? problem->code : "";
}

TEST(WebRules, OnlyLoopbackAndConfiguredHostsAreAccepted) {
  for (const char* host :
       {"localhost", "LOCALHOST:7296", "127.0.0.1:7296", "127.3.2.1", "[::1]:7296", "[::1]"}) {
    EXPECT_EQ(refused({{"Host", host}}), "") << host;
  }
  for (const char* host : {"example.com", "127.0.0.1.example.com", "localhost.example.com",
                           "128.0.0.1", "[::2]:7296", "", "0.0.0.0", "127.1", "user@localhost"}) {
    EXPECT_EQ(refused({{"Host", host}}), "foreign_host") << host;
  }
  EXPECT_EQ(refused({}), "foreign_host");
  EXPECT_EQ(refused({{"Host", "localhost"}, {"host", "localhost"}}), "foreign_host")
      << "sent twice";
  EXPECT_EQ(refused({{"Host", "Locks.example.com:443"}}, {"locks.example.com"}), "");
}

TEST(WebRules, AnOriginMustMatchHostAndPort) {
  const auto from = [](const char* origin) {
    return refused({{"Host", "localhost:7296"}, {"Origin", origin}});
  };
  EXPECT_EQ(from("http://localhost:7296"), "");
  EXPECT_EQ(from("https://localhost:7296"), "");
  for (const char* origin : {"http://localhost:3000", "http://localhost", "http://127.0.0.1:7296",
                             "null", "", "https://example.com", "localhost:7296"}) {
    EXPECT_EQ(from(origin), "foreign_origin") << origin;
  }
  EXPECT_EQ(
      refused(
          {{"Host", "localhost"}, {"Origin", "http://localhost"}, {"Origin", "http://localhost"}}),
      "foreign_origin")
      << "sent twice";
}

TEST(WebRules, CrossSiteRequestsAreRefusedExceptNavigation) {
  const auto marked = [](const char* site, const char* mode, const char* method) {
    return refused({{"Host", "localhost"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}}, {},
                   method);
  };
  EXPECT_EQ(marked("cross-site", "no-cors", "GET"), "foreign_origin");
  EXPECT_EQ(marked("same-site", "cors", "GET"), "foreign_origin");
  EXPECT_EQ(marked("cross-site", "navigate", "GET"), "");
  EXPECT_EQ(marked("cross-site", "navigate", "POST"), "foreign_origin");
  EXPECT_EQ(marked("same-origin", "cors", "POST"), "");
  EXPECT_EQ(marked("none", "navigate", "GET"), "");
}

TEST(WebRules, ABodyMustBeJson) {
  const auto refused_type = [](const char* type) {
    return refuse_media_type({"POST", "/", {{"Content-Type", type}}, "{}", ""}).has_value();
  };
  EXPECT_FALSE(refused_type("application/json"));
  EXPECT_FALSE(refused_type("Application/JSON; charset=utf-8"));
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                           "", "application/jsonp", "text/plain; application/json"}) {
    EXPECT_TRUE(refused_type(type)) << type;
  }
  EXPECT_TRUE(refuse_media_type({"POST", "/", {}, "{}", ""}).has_value());
  EXPECT_FALSE(refuse_media_type({"POST", "/", {}, "", ""}).has_value())
      << "there is no body to describe";
}

}  // namespace
}  // namespace pawl::http
