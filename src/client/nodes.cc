#include "client/nodes.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace pawl::client {
namespace {

bool same_place(const Address& a, const Address& b) {
  return a.host == b.host && a.port == b.port;
}

}  // namespace

Nodes::Nodes(std::vector<Address> configured) {
  if (configured.empty()) configured.emplace_back();
  for (Address& address : configured) nodes_.push_back({std::move(address)});
}

void Nodes::begin_round() {
  for (Node& node : nodes_) node.tried = false;
}

Nodes::Next Nodes::try_next() {
  for (std::size_t step = 1; step < nodes_.size(); ++step) {
    const std::size_t at = (current_ + step) % nodes_.size();
    if (nodes_[at].tried) continue;
    current_ = at;
    return Next::kAtOnce;
  }
  begin_round();
  current_ = (current_ + 1) % nodes_.size();
  return Next::kAfterPause;
}

Nodes::Next Nodes::on_failed() {
  nodes_[current_].tried = true;
  return try_next();
}

// Not at once: all clients of a pawld that ends lose it in the same moment.
Nodes::Next Nodes::on_lost() {
  begin_round();
  nodes_[current_].tried = true;
  static_cast<void>(try_next());
  return Next::kAfterPause;
}

Nodes::Next Nodes::on_standby(std::string_view active) {
  nodes_[current_].tried = true;
  const auto named = find_or_learn(active);
  if (!named) return try_next();
  if (!nodes_[*named].tried) {
    current_ = *named;
    return Next::kAtOnce;
  }
  const Next next = try_next();
  if (next == Next::kAfterPause) current_ = *named;  // It may have become active meanwhile.
  return next;
}

void Nodes::use(const Address& address) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (same_place(nodes_[i].address, address)) current_ = i;
  }
}

void Nodes::on_served() {
  begin_round();
}

std::optional<std::size_t> Nodes::find_or_learn(std::string_view active) {
  if (active.empty() || active.size() > limits::kAddressMax) return std::nullopt;
  auto parsed = parse_addresses(active);
  if (!parsed || parsed->size() != 1) return std::nullopt;
  Address& address = parsed->front();
  const Address& configured = nodes_.front().address;
  if (address.tls && !configured.tls) return std::nullopt;
  // Never less than what was configured: its certificate is verified like that of the others.
  address.tls = configured.tls;
  address.context = configured.context;
  const auto known = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return same_place(node.address, address);
  });
  if (known != nodes_.end()) return static_cast<std::size_t>(known - nodes_.begin());
  const auto learnt =
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.learnt; });
  if (static_cast<std::size_t>(learnt) < limits::kNodesLearnt) {
    nodes_.push_back({std::move(address), true});
    return nodes_.size() - 1;
  }
  // The one that was learnt first makes room, but not the one that names another.
  std::size_t oldest = nodes_.size() - limits::kNodesLearnt;
  if (oldest == current_) ++oldest;
  std::rotate(nodes_.begin() + static_cast<std::ptrdiff_t>(oldest),
              nodes_.begin() + static_cast<std::ptrdiff_t>(oldest) + 1, nodes_.end());
  if (current_ > oldest) --current_;
  nodes_.back() = {std::move(address), true};
  return nodes_.size() - 1;
}

}  // namespace pawl::client
