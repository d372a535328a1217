// An engine that knows users.
#pragma once

#include <utility>

#include "server/engine_fixture.h"
#include "server/permission_rows.h"

namespace pawl::server {

class AccessTest : public EngineTest {
 protected:
  static auth::User user(const std::string& name, wire::Access role, std::vector<std::string> prefixes = {},
                         const std::string& secret = "") {
    SeededRandom salt(name.size());
    return {name, role, auth::digest_of(secret.empty() ? secret_of(name) : secret, salt),
            std::move(prefixes)};
  }
  static std::string secret_of(const std::string& name) { return "secret-of-" + name; }
  static std::vector<auth::User> everyone() {
    return {user("looker", wire::Access::kObserve), user("worker", wire::Access::kUse),
            user("boss", wire::Access::kAdmin), user("limited", wire::Access::kAdmin, {std::string(kMine)})};
  }

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
