// A network of fake servers for an etcd::Client, with a clock that the test moves.
//
//   FakeCluster cluster(3);
//   Client client(cluster.options(), cluster);
//   client.transact(bytes);
//   cluster.run(client);                       // until nothing moves
//   cluster.calls.at(0) …                      // what reached which endpoint
//   cluster.answer(cluster.calls.at(0), txn_answer(…));
//   cluster.pass(client, 1s);
//
// Status is answered at once, unless the endpoint is frozen.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etcd/client.h"
#include "etcd/protobuf.h"
#include "etcd/testlib/fake_server.h"

namespace pawl::etcd {

// --- Answers of etcd -----------------------------------------------------------------------------

struct FakeHeader {
  std::int64_t revision = 1;
  std::uint64_t cluster = 7;
  std::uint64_t member = 1;
};

inline std::string header_bytes(FakeHeader header) {
  std::string out;
  put_integer(out, 1, static_cast<std::int64_t>(header.cluster));
  put_integer(out, 2, static_cast<std::int64_t>(header.member));
  put_integer(out, 3, header.revision);
  return out;
}

inline std::string range_answer(std::string_view key, std::string_view value,
                                FakeHeader header = {}) {
  std::string kv, out;
  put_bytes(kv, 1, key);
  put_bytes(kv, 5, value);
  put_message(out, 1, header_bytes(header));
  if (!key.empty()) put_message(out, 2, kv);
  return out;
}

inline std::string applied_answer(FakeHeader header = {}) {
  std::string out;
  put_message(out, 1, header_bytes(header));
  put_integer(out, 2, 1);
  return out;
}

// An empty key: it is absent.
inline std::string compare_failed_answer(std::string_view key, std::string_view value,
                                         FakeHeader header = {}) {
  std::string op, out;
  put_message(op, 1, range_answer(key, value, header));
  put_message(out, 1, header_bytes(header));
  put_message(out, 3, op);
  return out;
}

inline std::string status_answer(FakeHeader header, std::uint64_t leader) {
  std::string out;
  put_message(out, 1, header_bytes(header));
  put_bytes(out, 2, "3.4.23");
  put_integer(out, 4, static_cast<std::int64_t>(leader));
  return out;
}

inline std::string token_answer(std::string_view token) {
  std::string out;
  put_message(out, 1, header_bytes({}));
  put_bytes(out, 2, token);
  return out;
}

inline std::string watch_created_answer() {
  std::string out;
  put_message(out, 1, header_bytes({}));
  put_integer(out, 3, 1);
  return out;
}

// --- The network ---------------------------------------------------------------------------------

class FakeCluster final : public Network {
 public:
  struct Received {
    std::size_t endpoint = 0;
    ReceivedCall call;
    Instant at{};
  };

  explicit FakeCluster(std::size_t size) : nodes_(size) {
    for (std::size_t i = 0; i < size; ++i) nodes_[i].member = i + 1;
  }

  [[nodiscard]] ClientOptions options() const {
    ClientOptions made;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      made.endpoints.push_back("n" + std::to_string(i + 1) + ":2379");
    return made;
  }

  // --- The test's side ---------------------------------------------------------------------------
  Instant now{std::chrono::hours(1)};
  std::vector<Received> calls;  // In order of arrival; without Status.
  std::vector<Event> events;
  std::uint64_t leader = 1;         // Its member; endpoint 0 has member 1.
  bool status_needs_token = false;  // As in etcd 3.6, where there are users.

  void refuse_connections(std::size_t endpoint, bool refused) {
    nodes_[endpoint].refuses = refused;
  }
  // It reads and answers nothing, but its kernel accepts connections.
  void freeze(std::size_t endpoint, bool frozen) { nodes_[endpoint].frozen = frozen; }
  void use_cluster_id(std::size_t endpoint, std::uint64_t id) { nodes_[endpoint].cluster = id; }
  [[nodiscard]] FakeServer& server(std::size_t endpoint) { return *nodes_[endpoint].server; }
  [[nodiscard]] bool is_connected(std::size_t endpoint) const {
    return nodes_[endpoint].server != nullptr;
  }
  [[nodiscard]] int connections(std::size_t endpoint) const { return nodes_[endpoint].connections; }
  void answer(const Received& to, std::string_view message) {
    server(to.endpoint).answer(to.call.stream, message);
  }
  void refuse(const Received& to, std::string_view code, std::string_view text) {
    server(to.endpoint).refuse(to.call.stream, code, text);
  }
  // The connection is reset.
  void cut(Client& client, std::size_t endpoint) {
    nodes_[endpoint].server.reset();
    client.on_closed(endpoint, "Connection reset by peer", now);
  }

  // Until nothing moves.
  void run(Client& client) {
    do {
      client.pump(now);
    } while (step(client));
    for (Event& event : client.take_events()) events.push_back(std::move(event));
  }
  // Moves the clock from deadline to deadline.
  void pass(Client& client, Nanos time) {
    const Instant until = now + time;
    run(client);
    while (client.deadline() <= until) {
      now = std::max(now, client.deadline());
      run(client);
    }
    now = until;
    run(client);
  }

  template <class T>
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> found;
    for (const Event& event : events) {
      if (const T* one = std::get_if<T>(&event)) found.push_back(*one);
    }
    return found;
  }

  // --- Network -----------------------------------------------------------------------------------
  void connect(std::size_t endpoint) override { nodes_[endpoint].connecting = true; }
  void send(std::size_t endpoint, std::string_view bytes) override {
    nodes_[endpoint].to_server.append(bytes);
  }
  void close(std::size_t endpoint) override {
    nodes_[endpoint].server.reset();
    nodes_[endpoint].connecting = false;
    nodes_[endpoint].to_server.clear();
  }

 private:
  struct Node {
    std::unique_ptr<FakeServer> server = {};
    std::string to_server = {};
    bool connecting = false, refuses = false, frozen = false;
    int connections = 0;
    std::uint64_t cluster = 7, member = 0;
  };

  // Whether anything was moved.
  bool step(Client& client) {
    bool moved = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      if (std::exchange(node.connecting, false)) {
        moved = true;
        if (node.refuses) {
          client.on_closed(i, "Connection refused", now);
        } else {
          node.connections += 1;
          node.server = std::make_unique<FakeServer>();
          client.on_connected(i, now);
        }
      }
      if (node.server && !node.frozen) moved |= serve(client, i);
    }
    return moved;
  }

  bool serve(Client& client, std::size_t endpoint) {
    Node& node = nodes_[endpoint];
    node.server->receive(std::exchange(node.to_server, {}));
    for (ReceivedCall& call : node.server->take_calls()) {
      if (call.path == "/etcdserverpb.Maintenance/Status") {
        if (status_needs_token && !call.headers.contains("token")) {
          node.server->refuse(call.stream, "3", "etcdserver: user name is empty");
          continue;
        }
        const FakeHeader header{1, node.cluster, node.member};
        node.server->answer(call.stream, status_answer(header, leader));
      } else {
        calls.push_back({endpoint, std::move(call), now});
      }
    }
    const std::string output = node.server->take_output();
    if (!output.empty()) client.on_received(endpoint, output, now);
    return !output.empty();
  }

  std::deque<Node> nodes_;
};

}  // namespace pawl::etcd
