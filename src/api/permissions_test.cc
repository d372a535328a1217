// Every route as every kind of user. A route without a row fails.
#include <gmock/gmock.h>

#include <array>
#include <map>

#include "api/testlib/service_fixture.h"
#include "server/testlib/test_users.h"

namespace pawl::api {
namespace {

using server::Caller;
using server::Permission;
using server::PermissionAnswer;
using server::PermissionRow;
using wire::Access;
using enum server::Elsewhere;

// In the order of all_routes(). The role is written here again on purpose: to loosen one takes two
// decisions. A request is METHOD TARGET [BODY]; all carry the same lease.
constexpr std::array kRows{
    PermissionRow{"POST /v1/acquire", Access::kUse,
                  R"(POST /v1/acquire {"locks":["mine/a","mine/b"],"ttl_ms":1000})", kOutside,
                  R"(POST /v1/acquire {"locks":["mine/a","minerals"],"ttl_ms":1000})"},
    PermissionRow{"POST /v1/renew", Access::kUse, "POST /v1/renew"},
    PermissionRow{"POST /v1/release", Access::kUse, "POST /v1/release"},
    PermissionRow{"GET /v1/locks", Access::kObserve, "GET /v1/locks?prefix=mi", kOutside,
                  "GET /v1/locks?prefix=minerals"},
    PermissionRow{"GET /v1/locks/{name}", Access::kObserve, "GET /v1/locks/mine", kOutside,
                  "GET /v1/locks/other"},
    PermissionRow{"GET /v1/locks/{name}/history", Access::kObserve,
                  "GET /v1/locks/mine%2Fa/history", kOutside, "GET /v1/locks/minerals/history"},
    PermissionRow{"POST /v1/locks/{name}/ask", Access::kUse, "POST /v1/locks/mine%2Fa/ask {}",
                  kOutside, "POST /v1/locks/other/ask {}"},
    PermissionRow{"POST /v1/locks/{name}/break", Access::kAdmin,
                  R"(POST /v1/locks/mine%2Fa/break {"token":9999,"reason":"why"})", kOutside,
                  R"(POST /v1/locks/other/break {"token":9999,"reason":"why"})"},
    PermissionRow{"GET /v1/events", Access::kObserve, "GET /v1/events?prefix=mine/", kOutside,
                  "GET /v1/events?prefix=other/"},
    PermissionRow{"GET /v1/status", Access::kUser, "GET /v1/status"},
    PermissionRow{"GET /metrics", Access::kObserve, "GET /metrics"},
    PermissionRow{"GET /v1/openapi.json", Access::kNone, "GET /v1/openapi.json"},
    PermissionRow{"GET /healthz", Access::kNone, "GET /healthz"},
    PermissionRow{"GET /readyz", Access::kNone, "GET /readyz"},
    PermissionRow{"GET /", Access::kNone, "GET /"},
};

class RoutePermissionsTest : public ServiceTest {
 protected:
  RoutePermissionsTest() { engine_.set_users(server::Users(server::everyone())); }

  static PermissionAnswer permission_of(http::Response response) {
    if (response.status == 401) return {Permission::kAuthenticateFirst, std::move(response.body)};
    if (response.status == 403) return {Permission::kNotPermitted, std::move(response.body)};
    EXPECT_TRUE(response.status < 500) << response.body;
    return {Permission::kServed, std::move(response.body)};
  }
};

TEST_F(RoutePermissionsTest, TheRowsAreTheRoutes) {
  std::map<std::string, Access> routes, rows;
  for (const Route& route : service_.routes().all())
    routes.emplace(std::string(route.method) + " " + std::string(route.path), route.access);
  for (const PermissionRow& row : kRows) rows.emplace(row.name, row.needs);
  EXPECT_EQ(rows, routes) << "a route has no row, or another role: say here who may use it";
  for (const PermissionRow& row : kRows) {
    const http::Request request = request_of(row.here);
    const Match match =
        service_.routes().find(request.method, request.target.substr(0, request.target.find('?')));
    ASSERT_NE(match.route, nullptr) << row.here;
    EXPECT_EQ(std::string(match.route->method) + " " + std::string(match.route->path), row.name);
  }
}

TEST_F(RoutePermissionsTest, EveryRouteIsServedOnlyToThePermittedRoles) {
  server::expect_permissions(kRows, [&](Caller caller, std::string_view request) {
    const std::string name = server::name_of(caller);
    return permission_of(
        ask_with(request, name.empty() ? "" : "Bearer " + name + ":" + server::secret_of(name)));
  });
}

TEST_F(RoutePermissionsTest, ACertificateIsAsGoodAsASecret) {
  server::expect_permissions(kRows, [&](Caller caller, std::string_view text) {
    http::Request request = request_of(text);
    request.user = server::name_of(caller);
    return permission_of(ask(std::move(request)));
  });
}

TEST_F(RoutePermissionsTest, AnUnauthenticatedRequestIsAnsweredWithTheHeaderToSend) {
  for (const char* wrong : {"", "Basic d29ya2Vy", "Bearer", "Bearer worker"}) {
    const http::Response refused = ask_with("GET /v1/status", wrong);
    EXPECT_EQ(refused.status, 401) << wrong;
    EXPECT_THAT(refused.body, testing::HasSubstr("\"code\":\"noauth\""));
    ASSERT_EQ(refused.headers.size(), 1U);
    EXPECT_EQ(refused.headers[0].name, "WWW-Authenticate");
  }
}

TEST_F(RoutePermissionsTest, ARefusalNamesTheRouteAndNotTheCommandBehindIt) {
  EXPECT_THAT(
      ask_with("GET /v1/locks/mine", "").body,
      testing::HasSubstr("GET /v1/locks/{name} needs the role observe: send Authorization: Bearer "
                         "USER:SECRET\""));
  EXPECT_THAT(ask_with("GET /metrics", "").body,
              testing::HasSubstr("GET /metrics needs the role observe"));
  const std::string worker = server::name_of(Caller::kUse);
  const http::Response refused =
      ask_with(R"(POST /v1/locks/mine%2Fa/break {"token":9999,"reason":"why"})",
               "Bearer " + worker + ":" + server::secret_of(worker));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body,
              testing::HasSubstr("POST /v1/locks/{name}/break needs the role admin; user " +
                                 worker + " has use"));
}

TEST_F(RoutePermissionsTest, AWrongSecretIsAnsweredLateAndNothingIsDoneMeanwhile) {
  http::Request request = request_of(R"(POST /v1/acquire {"locks":["mine/a"],"ttl_ms":1000})");
  request.headers.push_back({"Authorization", "Bearer worker:wrong"});
  const auto exchange = std::make_shared<KeptExchange>(std::move(request));
  service_.handle(exchange);
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_FALSE(exchange->answered);
  for (int i = 0; i < 10; ++i) {  // In steps: a jump would be taken for a pause of pawld's own.
    clock_.advance(std::chrono::milliseconds(100));
    turn();
  }
  turn();
  ASSERT_TRUE(exchange->answered);
  EXPECT_EQ(exchange->answered->status, 401);
  EXPECT_THAT(exchange->answered->body, testing::HasSubstr("\"code\":\"wrongpass\""));
  EXPECT_EQ(engine_.totals().leases, 0U);
}

}  // namespace
}  // namespace pawl::api
