// An engine that knows users.
#pragma once

#include <utility>

#include "server/testlib/engine_fixture.h"
#include "server/testlib/test_users.h"

namespace pawl::server {

class AccessTest : public EngineTest {
 protected:
  void SetUp() override {
    start();
    engine().set_users(Users(everyone()));
  }
  Client connect_as(const std::string& name) {
    Client client = connect();
    EXPECT_EQ(client.ask("AUTH " + name + " " + secret_of(name)), "+OK\r\n");
    return client;
  }
  Client connect3_as(const std::string& name) {
    Client client = connect();
    EXPECT_EQ(client.ask("HELLO 3 AUTH " + name + " " + secret_of(name)).substr(0, 1), "%");
    return client;
  }
};

}  // namespace pawl::server
