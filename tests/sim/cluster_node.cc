#include "sim/cluster_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::sim {

std::string node_host(int number) {
  return fmt::format("node-{}", number);
}

namespace {

constexpr std::uint64_t kWatchers = std::uint64_t{1} << 60;

store::cluster::ClusterSettings quick(int number) {
  store::cluster::ClusterSettings settings;
  settings.address = node_host(number) + ":7295";
  settings.role_ttl = kRoleTtl;
  settings.heartbeat = kRoleTtl / 5;
  settings.poll = kRoleTtl / 10;
  settings.resend_pause = Millis(10);
  settings.jitter = kRoleTtl / 25;
  settings.batch_limits.bytes = 64 * 1024;
  // So that it is cleaned all the time.
  settings.cleaning = {
      .slack_bytes = 8 * 1024, .entries_free = 24, .carried_max = 2048, .entries_max = 8};
  return settings;
}

}  // namespace

ClusterNode::ClusterNode(World& world, Shared shared, int number, Rate rate)
    : world_(world),
      shared_(shared),
      number_(number),
      rate_(rate),
      random_(world.random().next()) {}
ClusterNode::~ClusterNode() = default;

// --- Starting and faults -------------------------------------------------------------------------

void ClusterNode::start() {
  PAWL_ASSERT(!up());
  ++life_;
  dying_ = paused_ = turn_due_ = false;
  held_since_.reset();
  served_epoch_ = 0;
  way_ = std::make_unique<SimulatedLog>(world_, shared_.log, [this] { turn_soon(); });
  store_ = std::make_unique<store::cluster::ClusterStore>(quick(number_), *way_, random_,
                                                          [this] { return boot_time(); });
  store_->wake_with(this);
  server::EngineSettings settings;
  settings.core.hash_seed = world_.random().next();
  // Some do little in a turn, so that what is postponed meets everything else.
  if (settings.core.hash_seed % 4 == 0) settings.work_per_turn = 2 * limits::kWorkPerCommand;
  engine_ = std::make_unique<server::Engine>(
      settings, server::EngineParts{*store_, *this, random_, *this, log_, [this](const Error& e) {
                                      dying_ = true;
                                      shared_.faults.push_back("P6: a pawld ends: " + e.detail);
                                    }});
  engine_->stand_by();
  world_.note([&] { return fmt::format("pawld {} starts", number_); });
  turn_soon();
}

void ClusterNode::kill() {
  if (!up()) return;
  world_.note([&] { return fmt::format("pawld {} is killed", number_); });
  ++life_;
  engine_.reset();
  store_.reset();
  way_.reset();
  arrived_.clear();
  network_->break_links(std::exchange(links_, {}));
}

void ClusterNode::pause(Nanos duration) {
  if (!up() || paused_) return;
  world_.note([&] { return fmt::format("pawld {} pauses", number_); });
  stand_still(duration, Clock::kRuns);
}

void ClusterNode::suspend(Nanos duration) {
  if (!up() || paused_) return;
  world_.note([&] { return fmt::format("the machine of pawld {} sleeps", number_); });
  stand_still(duration, Clock::kStops);
}

void ClusterNode::cut_off(bool cut) {
  if (!up()) return;
  world_.note([&] {
    return fmt::format("pawld {} {} the log", number_, cut ? "is cut off from" : "reaches");
  });
  way_->cut(cut);
}

void ClusterNode::resign() {
  if (!active() || paused_) return;
  world_.note([&] { return fmt::format("pawld {} resigns", number_); });
  engine_->hand_over();
  turn_soon();
}

void ClusterNode::stand_still(Nanos duration, Clock clock) {
  paused_ = true;
  way_->pause(true);
  shared_.history.pauses.push_back({world_.now(), world_.now() + duration});
  world_.after(duration, [this, clock, life = life_, before = boot_time()] {
    if (life != life_) return;
    paused_ = false;
    if (clock == Clock::kStops) slept_ += boot_time() - before;
    world_.note([&] { return fmt::format("pawld {} goes on", number_); });
    // Half of the time its clients are read before the log is: then nothing tells it that it is
    // deposed, but the clock.
    const bool log_first = world_.chance(50);
    if (log_first) way_->pause(false);
    for (Arrival& arrival : std::exchange(arrived_, {})) {
      arrival.hangup ? on_hangup(arrival.link) : on_bytes(arrival.link, std::move(arrival.bytes));
    }
    if (!log_first) {
      turn();
      if (up()) way_->pause(false);
    }
    turn_soon();
  });
}

// --- The network ---------------------------------------------------------------------------------

bool ClusterNode::on_connect(LinkId link) {
  if (!up() || !engine_->connected(server::ConnectionId{link}, "client")) return false;
  links_.insert(link);
  return true;
}

void ClusterNode::on_bytes(LinkId link, std::string bytes) {
  if (!links_.contains(link)) return;
  if (paused_) return arrived_.push_back({link, false, std::move(bytes)});
  engine_->received(server::ConnectionId{link}, bytes);
  turn_soon();
}

void ClusterNode::on_hangup(LinkId link) {
  if (!links_.contains(link)) return;
  if (paused_) return arrived_.push_back({link, true, {}});
  engine_->hangup(server::ConnectionId{link});
  turn_soon();
}

std::size_t ClusterNode::send(server::ConnectionId connection, std::string_view bytes) {
  if (connection.value >= kWatchers) {
    shared_.watch.received(bytes, read().monotonic, held_since_);
  } else {
    network_->send_to_client(connection.value, std::string(bytes));
  }
  return bytes.size();
}

void ClusterNode::close(server::ConnectionId connection) {
  if (connection.value >= kWatchers) return;
  links_.erase(connection.value);
  network_->close_by_server(connection.value);
}

// --- Time ----------------------------------------------------------------------------------------

server::ClockReading ClusterNode::read() {
  const Nanos monotonic = boot_time() - slept_;
  return {monotonic, UnixMs{static_cast<std::uint64_t>(1'700'000'000'000 + monotonic / Millis(1))}};
}

void ClusterNode::turn_soon() {
  if (std::exchange(turn_due_, true)) return;
  world_.after(world_.between(std::chrono::microseconds(1), std::chrono::microseconds(300)),
               [this, life = life_] {
                 if (life != life_ || !up()) return;
                 turn_due_ = false;
                 if (!paused_) turn();
               });
}

void ClusterNode::turn() {
  store_->on_timer();
  const auto closed = [this] { return boot_time() >= store_->may_answer_until(); };
  if (closed() && !held_since_) held_since_ = read().monotonic;
  engine_->run_turn();
  if (dying_) return kill();
  if (!closed()) held_since_.reset();
  look_at_role();
  store_->on_timer();  // What the turn has asked for.
  const Nanos timer = store_->next_timer();
  Nanos delay = std::min<Nanos>(engine_->patience(), server::kWakeEvery);
  if (timer != Nanos::max()) delay = std::min<Nanos>(delay, timer - boot_time());
  wake_at(delay);
}

// An observer inside the node, from the moment it serves.
void ClusterNode::look_at_role() {
  if (!active() || engine_->epoch() == served_epoch_) return;
  served_epoch_ = engine_->epoch();
  ++takeovers_;
  shared_.history.starts.push_back({world_.now(), totals().last_token, Millis(0)});
  world_.note([&] {
    return fmt::format("pawld {} takes over: epoch {}, {} leases, last token {}", number_,
                       served_epoch_, totals().leases, totals().last_token.value);
  });
  watcher_ = server::ConnectionId{kWatchers + served_epoch_};
  engine_->connected(watcher_, "watcher");
  engine_->received(watcher_, shared_.watch.start(read().monotonic));
  // Before anything happens that it should see: a grant takes a while to become durable.
  while (!dying_ && !shared_.watch.observing()) engine_->run_turn();
}

void ClusterNode::wake_at(Nanos delay) {
  if (delay <= Nanos(0)) return turn_soon();
  world_.after(delay, [this, life = life_, alarm = ++alarm_] {
    if (life == life_ && alarm == alarm_ && up()) turn_soon();
  });
}

}  // namespace pawl::sim
