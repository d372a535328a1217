// What a pawld that stands by answers over HTTP.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "api/openapi.h"
#include "api/testlib/service_fixture.h"

namespace pawl::api {
namespace {

using testing::HasSubstr;

class StandbyTest : public ServiceTest {
 protected:
  void depose(std::string advertised) {
    store_.depose({.address = std::move(advertised), .epoch = 4});
    turn();
  }
  static std::string header(const http::Response& response, std::string_view name) {
    for (const http::Header& header : response.headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }
};

TEST_F(StandbyTest, RequestsAreSentToTheActiveOne) {
  depose("db2:7295/7296");
  for (const std::string_view text :
       {"POST /v1/acquire {\"locks\":[\"a\"],\"ttl_ms\":1000}", "POST /v1/renew",
        "POST /v1/release", "GET /v1/locks?prefix=a%2Fb", "GET /v1/locks/a", "GET /v1/events"}) {
    const http::Request request = request_of(text);
    const http::Response response = ask(request_of(text));
    EXPECT_EQ(response.status, 307) << text;
    EXPECT_EQ(header(response, "Location"), "http://db2:7296" + request.target) << text;
    EXPECT_EQ(header(response, "Pawl-Active"), "db2:7295") << text;
    EXPECT_THAT(response.body, HasSubstr("\"code\":\"standby\"")) << text;
  }
}

TEST_F(StandbyTest, HttpInterfaceOfTheActiveOneMayHaveAnotherHost) {
  depose("db2:7295/locks.example:443");
  http::Request request = request_of("GET /v1/locks/a");
  request.tls = true;
  EXPECT_EQ(header(ask(std::move(request)), "Location"), "https://locks.example:443/v1/locks/a");
}

TEST_F(StandbyTest, WithoutAnActiveOneTheClientIsToldToComeBack) {
  for (const char* advertised : {"", "db2:7295"}) {
    depose(advertised);
    const http::Response response = ask(request_of("GET /v1/locks/a"));
    EXPECT_EQ(response.status, 503) << advertised;
    EXPECT_EQ(header(response, "Location"), "") << advertised;
    EXPECT_EQ(header(response, "Retry-After"), "1") << advertised;
    EXPECT_EQ(header(response, "Pawl-Active"), advertised);
    store_.elect();
    turn();
  }
}

TEST_F(StandbyTest, ItsOwnHealthStatusAndFiguresAreNotThoseOfTheActiveOne) {
  depose("db2:7295/7296");
  EXPECT_EQ(ask(request_of("GET /healthz")).status, 200);
  EXPECT_EQ(ask(request_of("GET /readyz")).status, 503);
  EXPECT_EQ(ask(request_of("GET /metrics")).status, 200);
  const http::Response status = ask(request_of("GET /v1/status"));
  EXPECT_EQ(status.status, 200);
  EXPECT_THAT(status.body, HasSubstr("standby"));
}

TEST_F(StandbyTest, TheDocumentNames307WhereItIsAnswered) {
  depose("db2:7295/7296");
  const RouteTable table = all_routes();
  const boost::json::value document = boost::json::parse(openapi_document(table));
  for (const Route& route : table.all()) {
    if (route.method != "GET") continue;
    const boost::json::object& methods = document.at("paths").at(route.path).as_object();
    const bool documented = methods.at("get").at("responses").as_object().contains("307");
    std::string path(route.path);
    if (const std::size_t at = path.find("{name}"); at != std::string::npos)
      path.replace(at, std::string_view("{name}").size(), "a");
    EXPECT_EQ(documented, ask(request_of("GET " + path)).status == 307) << route.path;
  }
}

}  // namespace
}  // namespace pawl::api
