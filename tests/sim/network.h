// The simulated network between clients and one server: connections that deliver bytes in order,
// late, in pieces, or not at all. A connection breaks as a whole, as TCP's do; each end learns of
// it at its own time, or never (half-open) until it times out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/world.h"

namespace pawl::sim {

using LinkId = std::uint64_t;

// One end's view of its connections. Called at the moment of arrival.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual void on_bytes(LinkId link, std::string bytes) = 0;
  virtual void on_hangup(LinkId link) = 0;
};

class ServerEndpoint : public Endpoint {
 public:
  // The host of each process, where there are several.
  [[nodiscard]] virtual std::vector<std::string> hosts() const { return {}; }
  // To one of the hosts, or to no particular one. False: refused.
  virtual bool on_connect(LinkId link, const std::string& host) = 0;
};

struct NetworkFaults {
  Nanos delay_least = std::chrono::microseconds(50);
  Nanos delay_most = Millis(2);
  unsigned slow_percent = 2;  // A delivery takes up to slow_most instead.
  Nanos slow_most = Millis(900);
  unsigned break_percent = 1;       // A send breaks the connection; what is under way is lost.
  unsigned half_open_percent = 30;  // Of the breaks: the server does not notice for a long time.
};

class Network {
 public:
  Network(World& world, ServerEndpoint& server, NetworkFaults faults)
      : world_(world), server_(server), faults_(faults) {}

  [[nodiscard]] std::vector<std::string> hosts() const { return server_.hosts(); }
  // The client gets connected(link) or refused() after a while. Neither when the network is cut:
  // it must time out.
  LinkId connect(Endpoint& client, std::function<void(LinkId)> connected,
                 std::function<void()> refused, std::string host = {});
  void send_to_server(LinkId link, std::string bytes) { send(link, std::move(bytes), true); }
  void send_to_client(LinkId link, std::string bytes) { send(link, std::move(bytes), false); }
  // This end is done with it; what it sent before is still delivered.
  void close_by_client(LinkId link);
  void close_by_server(LinkId link);
  // The server's machine or process is gone: every connection breaks, and both directions are lost.
  void break_all();
  // The same for the connections of one process among several.
  void break_links(const std::set<LinkId>& links);
  // While cut, nothing passes, and connections under way break.
  void cut(bool now_cut) { cut_ = now_cut; }
  void heal() { faults_.break_percent = faults_.slow_percent = 0; }

 private:
  struct Link {
    Endpoint* client = nullptr;
    Moment to_server_until{}, to_client_until{};  // Bytes keep their order.
    bool client_open = false, server_open = false;
  };

  void send(LinkId link, std::string bytes, bool to_server);
  void break_link(LinkId link, bool half_open);
  void lose_server(LinkId link);
  Moment arrival(Moment& not_before);

  World& world_;
  ServerEndpoint& server_;
  NetworkFaults faults_;
  std::map<LinkId, Link> links_;
  LinkId last_ = 0;
  bool cut_ = false;
};

}  // namespace pawl::sim
