// The gate: clients on one side, the upstream on the other, a fence for each resource between.
//
//   on_head      which resource, which token; what is wrong is refused before its body is read
//   on_request   the fence decides: forward, refuse, or wait
//   on_end       a forward is over: the fence may let others go
//
// One thread runs it (run()); a second one writes the marks. Decided without I/O are the fences
// (fence.h) and what HTTP means (http1.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "gate/client_connection.h"
#include "gate/fences.h"
#include "gate/forward.h"
#include "gate/mark_writer.h"
#include "gate/poller.h"
#include "gate/resource_pattern.h"
#include "pawl/guard.h"

namespace pawl::gate {

struct ProxySettings {
  GuardMode mode = GuardMode::kEnforce;  // not kCanary
  bool allow_missing = false;            // with kEnforce: writes without a token pass
  bool pass_unmatched = false;           // writes that are for no resource pass
  std::vector<ResourcePattern> resources;
  FenceSettings fence;
  std::size_t resources_max = 0;
  std::size_t connections_max = 0;
  Forward::Settings upstream;
  std::shared_ptr<const tls::ServerContext> tls;  // for clients; nullptr: plain
};

// Counted since the start, for metrics.
struct ProxyCounts {
  // By verdict: "admitted", "stale", …; what a mode let through is in both.
  std::map<std::string, std::uint64_t> decisions;
  std::uint64_t let_through = 0;
  std::map<std::string, std::uint64_t> outcomes;  // of forwards: "answered", "not_sent", "unknown"
  std::uint64_t gave_up = 0;                      // waits for a drain
  std::uint64_t refused_connections = 0;
  std::uint64_t mark_writes = 0;
  std::uint64_t settled = 0;
};

class Proxy final : public ClientHandler, public ForwardHandler {
 public:
  // `marks` outlives it.
  Proxy(ProxySettings settings, MarkFile& marks, Log& log);
  ~Proxy() override;

  // A listening, non-blocking socket. Before run().
  void listen(UniqueFd socket, ClientConnection::Door door);
  // Serves until `stop_fd` is readable, then ends in order: what is in flight has kGateStopTime. An
  // error: the marks could not be written.
  Result<void> run(int stop_fd);

 private:
  class Acceptor;
  class Signal;
  // What on_head() found out, until the answer.
  struct Plan {
    NamedFence* fence = nullptr;  // nullptr: it is not fenced
    Token token{};
    Kind kind = Kind::kWrite;
    RequestId request{};
    Forward* forward = nullptr;
  };

  // --- Clients ------------------------------------------------------------------------------
  void accept(int listener, ClientConnection::Door door);
  bool make_room();
  std::optional<http::Problem> on_head(ClientConnection& client) override;
  void on_request(ClientConnection& client) override;
  void on_body(ClientConnection& client) override;
  void on_room(ClientConnection& client) override;
  void on_silent(ClientConnection& client) override;
  void on_closed(ClientConnection& client) override;

  std::optional<http::Problem> plan(ClientConnection& client, Plan& plan);
  std::optional<http::Problem> plan_fenced(ClientConnection& client, std::string_view path,
                                           Token token, Plan& plan);
  http::Problem refusal(ClientConnection& client, const Plan& plan, Verdict verdict, Token max);
  http::Problem draining(const Plan& plan);

  // --- Fences -------------------------------------------------------------------------------
  void act(NamedFence& fence);
  void act(NamedFence& fence, const Action& action);
  void count(Verdict verdict);
  void on_time();
  void on_marks_written();

  // --- Forwards (proxy_forwards.cc) ----------------------------------------------------------
  void start_forward(ClientConnection& client);
  void pump_body(ClientConnection& client, Forward& forward);
  void detach(Forward& forward);
  void on_answer_head(Forward& forward, const ResponseHead& head) override;
  void on_answer_body(Forward& forward, std::string_view payload) override;
  void on_forward_room(Forward& forward) override;
  void on_late(Forward& forward) override;
  void on_end(Forward& forward, Outcome outcome, const std::string& why) override;

  // --- Administration (proxy_admin.cc) -------------------------------------------------------
  http::Response administer(const ClientConnection& client);
  http::Response settle(const std::string& body);
  [[nodiscard]] std::string status_json();
  [[nodiscard]] std::string metrics_text();

  void begin_stop();
  // Deletes what has ended in this turn.
  void sweep();

  const ProxySettings settings_;
  MarkFile& marks_;
  Log& log_;
  Poller poller_;
  Fences fences_;
  MarkWriter writer_;
  ProxyCounts counts_;

  std::uint64_t last_id_ = 0;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::unordered_map<ClientConnection::Id, std::unique_ptr<ClientConnection>> clients_;
  std::unordered_map<ClientConnection::Id, Plan> plans_;
  std::unordered_map<RequestId, ClientConnection*> requests_;  // those at a fence, or forwarded
  std::unordered_map<RequestId, std::unique_ptr<Forward>> forwards_;
  std::size_t late_ = 0;  // of forwards_
  Actions actions_;
  bool stopping_ = false;
  Result<void> failure_;

  std::vector<std::unique_ptr<ClientConnection>> ended_clients_;
  std::vector<std::unique_ptr<Forward>> ended_forwards_;
};

}  // namespace pawl::gate
