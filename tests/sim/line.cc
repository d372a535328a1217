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
  connecting_ = frozen_ = false;
  arrived_.clear();
  machine_ = std::make_unique<client::Machine>(
      world_.random(), client::MachineOptions{.answer_timeout = Millis(700)});
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
  connecting_ = true;
  const std::uint64_t life = life_;
  (void)network_.connect(
      *this,
      [this, life](LinkId link) {
        if (life != life_ || !std::exchange(connecting_, false))
          return network_.close_by_client(link);
        link_ = link;
        machine_->connected(now());
        on_event_();
      },
      [this, life] {
        if (life != life_ || !std::exchange(connecting_, false)) return;
        machine_->disconnected("refused", now());
        on_event_();
      });
  world_.after(Millis(500), [this, life] {  // An attempt without an answer is given up.
    if (life != life_ || !std::exchange(connecting_, false)) return;
    machine_->disconnected("timed out", now());
    on_event_();
  });
}

void Line::settle(client::Instant wake) {
  if (frozen_) return;
  if (machine_->wants_close() && link_) {
    network_.close_by_client(*std::exchange(link_, std::nullopt));
    machine_->disconnected("of no use", now());
  }
  if (!link_ && !connecting_ && machine_->wants_connection(now())) connect();
  if (link_) network_.send_to_server(*link_, machine_->take_output());

  client::Instant next = std::min(machine_->next_timer(), wake);
  if (next == client::kNever) return;
  if (connecting_)
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
