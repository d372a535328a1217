#include "sim/network.h"

#include <utility>
#include <vector>

namespace pawl::sim {

Moment Network::arrival(Moment& not_before) {
  const bool slow = world_.chance(faults_.slow_percent);
  const Nanos delay =
      world_.between(faults_.delay_least, slow ? faults_.slow_most : faults_.delay_most);
  not_before = std::max(not_before, world_.now() + delay);
  return not_before;
}

LinkId Network::connect(Endpoint& client, std::function<void(LinkId)> connected,
                        std::function<void()> refused, std::string host) {
  const LinkId id = ++last_;
  if (cut_) return id;  // No answer.
  Link& link = links_[id];
  link.client = &client;
  world_.at(arrival(link.to_server_until), [this, id, connected = std::move(connected),
                                            refused = std::move(refused), host = std::move(host)] {
    const auto found = links_.find(id);
    if (found == links_.end()) return;
    if (!server_.on_connect(id, host)) {
      links_.erase(found);
      return refused();
    }
    found->second.client_open = found->second.server_open = true;
    connected(id);
  });
  return id;
}

void Network::send(LinkId id, std::string bytes, bool to_server) {
  const auto found = links_.find(id);
  if (found == links_.end() || bytes.empty()) return;
  if (cut_ || world_.chance(faults_.break_percent)) {
    // Some of it may still have arrived: an acquire that was applied and never answered.
    if (!cut_ && to_server && world_.chance(50)) {
      world_.at(arrival(found->second.to_server_until), [this, id, bytes] {
        if (links_.contains(id) && links_[id].server_open) server_.on_bytes(id, bytes);
      });
    }
    return break_link(id, world_.chance(faults_.half_open_percent));
  }
  Link& link = found->second;
  while (!bytes.empty()) {
    const std::size_t size =
        world_.chance(10) ? 1 + world_.random().below(bytes.size()) : bytes.size();
    std::string piece = bytes.substr(0, size);
    bytes.erase(0, size);
    Moment& until = to_server ? link.to_server_until : link.to_client_until;
    world_.at(arrival(until), [this, id, to_server, piece = std::move(piece)] {
      const auto at = links_.find(id);
      if (at == links_.end()) return;
      if (to_server && at->second.server_open) server_.on_bytes(id, piece);
      if (!to_server && at->second.client_open) at->second.client->on_bytes(id, piece);
    });
  }
}

void Network::break_link(LinkId id, bool half_open) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  Link& link = found->second;
  world_.at(arrival(link.to_client_until), [this, id] {
    const auto at = links_.find(id);
    if (at == links_.end() || !std::exchange(at->second.client_open, false)) return;
    at->second.client->on_hangup(id);
  });
  const Nanos unnoticed = half_open ? Nanos(std::chrono::seconds(20)) : Nanos(0);
  world_.at(arrival(link.to_server_until) + unnoticed, [this, id] {
    const auto at = links_.find(id);
    if (at == links_.end() || !std::exchange(at->second.server_open, false)) return;
    server_.on_hangup(id);
  });
}

void Network::close_by_client(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second.client_open = false;
  world_.at(arrival(found->second.to_server_until), [this, id] {
    const auto at = links_.find(id);
    if (at == links_.end() || !std::exchange(at->second.server_open, false)) return;
    server_.on_hangup(id);
  });
}

void Network::close_by_server(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second.server_open = false;
  world_.at(arrival(found->second.to_client_until), [this, id] {
    const auto at = links_.find(id);
    if (at == links_.end() || !std::exchange(at->second.client_open, false)) return;
    at->second.client->on_hangup(id);
  });
}

void Network::break_all() {
  for (const auto& [id, link] : links_) lose_server(id);
}

void Network::break_links(const std::set<LinkId>& links) {
  for (const LinkId id : links) lose_server(id);
}

void Network::lose_server(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second.server_open = false;
  if (!found->second.client_open) return;
  world_.after(world_.between(faults_.delay_least, faults_.delay_most), [this, id] {
    const auto at = links_.find(id);
    if (at == links_.end() || !std::exchange(at->second.client_open, false)) return;
    at->second.client->on_hangup(id);
  });
}

}  // namespace pawl::sim
