#include "api/route.h"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include "api/openapi.h"
#include "base/limits.h"

namespace pawl::api {
namespace {

struct Found {
  std::string_view id;
  std::string name;
};

Found find(std::string_view method, std::string_view path) {
  static const RouteTable table = all_routes();
  const Match match = table.find(method, path);
  return match.route == nullptr ? Found{match.allowed.empty() ? "none" : "other method", ""}
                                : Found{match.route->id, match.name};
}

TEST(RouteTable, APathLeadsToItsRouteAndANameStaysEncoded) {
  EXPECT_EQ(find("GET", "/v1/status").id, "status");
  EXPECT_EQ(find("GET", "/v1/locks").id, "list");
  EXPECT_EQ(find("GET", "/v1/locks/a").id, "show");
  EXPECT_EQ(find("GET", "/v1/locks/a%2Fb").name, "a%2Fb");
  EXPECT_EQ(find("POST", "/v1/locks/a/break").name, "a");
}

TEST(RouteTable, SlashesMayStandInANameAndTheLongerPatternCounts) {
  EXPECT_EQ(find("GET", "/v1/locks/a/b/c").name, "a/b/c");
  EXPECT_EQ(find("GET", "/v1/locks/a/b/history").id, "history");
  EXPECT_EQ(find("GET", "/v1/locks/a/b/history").name, "a/b");
  EXPECT_EQ(find("GET", "/v1/locks/a%2Fhistory").id, "show");
  EXPECT_EQ(find("GET", "/v1/locks/history").id, "show");
  EXPECT_EQ(find("GET", "/v1/locks/a/break").id, "other method") << "and not the lock a/break";
}

TEST(RouteTable, AnUnknownRouteDiffersFromAWrongMethod) {
  for (const char* path : {"/nope", "/v1/locks/", "/v1/status/", "/v1", "", "/v1/locks//history/"})
    EXPECT_NE(find("GET", path).id, "status") << path;
  EXPECT_EQ(find("GET", "/nope").id, "none");
  EXPECT_EQ(find("GET", "/v1/locks/").id, "none");
  EXPECT_EQ(find("GET", "/v1/acquire").id, "other method");
  EXPECT_EQ(find("OPTIONS", "/v1/acquire").id, "other method");
}

TEST(RouteTable, EveryRouteHasARoleAndAnswers) {
  const RouteTable table = all_routes();
  for (const Route& route : table.all()) {
    EXPECT_FALSE(route.summary.empty()) << route.path;
    EXPECT_FALSE(route.answers.empty()) << route.path;
    EXPECT_FALSE(route.example.empty()) << route.path;
    // No side effect without a POST: nothing else keeps a link from causing it.
    EXPECT_TRUE(route.method == "POST" || route.access <= wire::Access::kObserve) << route.path;
  }
}

TEST(OpenApi, TheLimitsOfTheDocumentAreThoseThatAreEnforced) {
  const RouteTable table = all_routes();
  const boost::json::value document = boost::json::parse(openapi_document(table));
  const auto number = [&](const std::string& pointer) {
    return static_cast<std::uint64_t>(
        document.at_pointer("/components/schemas/" + pointer).as_int64());
  };
  const auto ms = [](Millis limit) { return static_cast<std::uint64_t>(limit.count()); };
  const std::string acquire = "AcquireRequest/properties/";
  EXPECT_EQ(number("Token/maximum"), limits::kTokenMax);
  EXPECT_EQ(number("LockName/maxLength"), limits::kLockNameMax);
  EXPECT_EQ(number(acquire + "locks/maxItems"), limits::kLocksPerLease);
  EXPECT_EQ(number(acquire + "ttl_ms/minimum"), ms(limits::kTtlMin));
  EXPECT_EQ(number(acquire + "ttl_ms/maximum"), ms(limits::kTtlMaxCeiling));
  EXPECT_EQ(number(acquire + "wait_ms/maximum"), ms(limits::kHttpWaitMax));
  EXPECT_EQ(number(acquire + "owner/maxLength"), limits::kOwnerMax);
  EXPECT_EQ(number(acquire + "limit/maximum"), limits::kHoldersMax);
  EXPECT_EQ(number(acquire + "delay_ms/maximum"), ms(limits::kDelayMax));
  EXPECT_EQ(number(acquire + "max_hold_ms/maximum"), ms(limits::kMaxHoldMax));
  EXPECT_EQ(number(acquire + "meta/maxProperties"), limits::kMetaPairs);
  EXPECT_EQ(number("BreakRequest/properties/reason/maxLength"), limits::kReasonMax);
  for (const Route& route : table.all()) {
    for (const HttpParameter& parameter : route.parameters) {
      if (parameter.name != "limit") continue;
      const boost::json::value schema = boost::json::parse(std::string(parameter.schema));
      EXPECT_EQ(static_cast<std::size_t>(schema.at("maximum").as_int64()), limits::kCountMax)
          << route.path;
      EXPECT_EQ(static_cast<std::size_t>(schema.at("default").as_int64()), limits::kCountDefault)
          << route.path;
    }
  }
}

TEST(RouteTable, OnlyProbesAreAnsweredForAnyHost) {
  const RouteTable table = all_routes();
  for (const Route& route : table.all())
    EXPECT_EQ(route.any_host, route.path == "/healthz" || route.path == "/readyz") << route.path;
}

}  // namespace
}  // namespace pawl::api
