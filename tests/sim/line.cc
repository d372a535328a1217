#include "sim/line.h"

#include <algorithm>

#include "base/mutants.h"

namespace pawl::sim {

Line::Line(World& world, Network& network, Rate rate, std::function<void()> on_event)
    : world_(world), network_(network), rate_(rate), on_event_(std::move(on_event)) {
  be_reborn();
}

void Line::be_reborn() {
  ++life_;
  ++alarm_;
  if (link_) network_.close_by_client(*std::exchange(link_, std::nullopt));
  connecting_ = 0;
  frozen_ = false;
  arrived_.clear();
  machine_ = std::make_unique<client::Machine>(
      world_.random(),
      client::MachineOptions{.nodes = some_nodes(), .answer_timeout = Millis(700)});
}

// Half of the clients know all of them, in some order; the others only some, and must be told.
std::vector<client::Address> Line::some_nodes() {
  std::vector<std::string> hosts = network_.hosts();
  if (hosts.empty()) return {};
  for (std::size_t i = hosts.size(); i-- > 1;)
    std::swap(hosts[i], hosts[world_.random().below(i + 1)]);
  if (world_.chance(50)) hosts.resize(1 + world_.random().below(hosts.size()));
  std::vector<client::Address> nodes;
  for (std::string& host : hosts) nodes.push_back({std::move(host)});
  return nodes;
}

void Line::on_bytes(LinkId link, std::string bytes) {
  if (frozen_) return void(arrived_.emplace_back(link, std::move(bytes)));
  if (link_ != link) return;
  machine_->received(bytes, now());
  on_event_();
}

void Line::on_hangup(LinkId link) {
  if (frozen_) return void(arrived_.emplace_back(link, ""));
  if (link_ != link) return;
  link_.reset();
  machine_->disconnected("the connection broke", now());
  on_event_();
}

void Line::connect() {
  const std::uint64_t attempt = connecting_ = ++attempts_;
  const auto failed = [this, attempt](const char* why) {
    if (connecting_ != attempt) return;
    connecting_ = 0;
    machine_->disconnected(why, now());
    on_event_();
  };
  (void)network_.connect(
      *this,
      [this, attempt](LinkId link) {
        if (connecting_ != attempt) return network_.close_by_client(link);
        connecting_ = 0;
        link_ = link;
        machine_->connected(now());
        on_event_();
      },
      [failed] { failed("refused"); }, network_.hosts().empty() ? "" : machine_->node().host);
  world_.after(Millis(500), [failed] { failed("timed out"); });
}

void Line::settle(client::Instant wake) {
  if (frozen_) return;
  if (machine_->wants_close() && link_) {
    network_.close_by_client(*std::exchange(link_, std::nullopt));
    machine_->disconnected("of no use", now());
  }
  if (!link_ && connecting_ == 0 && machine_->wants_connection(now())) connect();
  if (link_) network_.send_to_server(*link_, machine_->take_output());

  client::Instant next = std::min(machine_->next_timer(), wake);
  if (next == client::kNever) return;
  if (connecting_ != 0)
    next = std::max(next, now() + Millis(10));  // The machine would connect now, and so it does.
  const std::uint64_t alarm = ++alarm_;
  world_.at(std::max(moment(next), world_.now() + std::chrono::microseconds(1)), [this, alarm] {
    if (alarm == alarm_ && !frozen_) on_event_();
  });
}

void Line::nudge(Nanos delay) {
  world_.after(delay, [this, life = life_] {
    if (life == life_ && !frozen_) on_event_();
  });
}

void Line::freeze() {
  frozen_ = true;
  frozen_since_ = world_.now();
}

void Line::thaw() {
  frozen_ = false;
  if (PAWL_MUTANT(clock_stops_in_suspend))
    stopped_ += rate_.local(world_.now()) - rate_.local(frozen_since_);
  for (auto& [link, bytes] : std::exchange(arrived_, {})) {
    bytes.empty() ? on_hangup(link) : on_bytes(link, bytes);
  }
  on_event_();
}

}  // namespace pawl::sim
