// The fixture of tests of the HTTP interface: the service, an engine behind it, and no socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/service.h"
#include "server/testlib/engine_fixture.h"

namespace pawl::api {

// A request whose answer is kept.
class KeptExchange final : public http::Exchange {
 public:
  explicit KeptExchange(http::Request request) : request_(std::move(request)) {}
  const http::Request& request() const override { return request_; }
  http::Admission admit() override { return http::Admission::kAll; }
  void answer(http::Response response) override { answered = std::move(response); }
  void begin_stream(http::Response head, std::string) override { answered = std::move(head); }
  void write(std::string) override {}
  void end_stream() override {}

  std::optional<http::Response> answered;

 private:
  const http::Request request_;
};

class ServiceTest : public testing::Test, public server::Network {
 protected:
  ServiceTest() {
    const auto loaded = engine_.load();
    EXPECT_TRUE(loaded);
  }
  std::size_t send(server::ConnectionId id, std::string_view bytes) override {
    return mailbox_.deliver(id, bytes);
  }
  void want_input(server::ConnectionId, bool) override {}
  void close(server::ConnectionId id) override { mailbox_.close(id); }

  static http::Request request_of(std::string_view text) {
    http::Request request;
    const std::size_t method = text.find(' '), target = text.find(' ', method + 1);
    request.method = text.substr(0, method);
    request.target = text.substr(method + 1, target - method - 1);
    if (target != std::string_view::npos) request.body = text.substr(target + 1);
    request.peer = "test";
    request.headers = {{"Host", "localhost"},
                       {"Content-Type", "application/json"},
                       {"Pawl-Lease", "00112233445566778899aabbccddeeff"}};
    return request;
  }
  http::Response ask(http::Request request) {
    const auto exchange = std::make_shared<KeptExchange>(std::move(request));
    service_.handle(exchange);
    for (int i = 0; i < 10 && !exchange->answered; ++i) turn();
    EXPECT_TRUE(exchange->answered) << exchange->request().target;
    if (exchange->on_gone) exchange->on_gone(http::Gone::kClosed);
    return exchange->answered.value_or(http::Response{});
  }
  http::Response ask_with(std::string_view text, const std::string& authorization) {
    http::Request request = request_of(text);
    if (!authorization.empty()) request.headers.push_back({"Authorization", authorization});
    return ask(std::move(request));
  }
  void turn() {
    (void)mailbox_.serve(engine_, 100);
    engine_.run_turn();
    service_.take_deliveries();
  }

  store::MemoryStore store_{Incarnation{7}};
  server::ManualClock clock_;
  SeededRandom random_{1};
  NoLog log_;
  server::EngineMailbox mailbox_;
  server::Engine engine_{
      server::EngineSettings{},
      server::EngineParts{store_, clock_, random_, *this, log_, [](const Error&) {}}};
  Service service_{mailbox_, {}};
};

}  // namespace pawl::api
