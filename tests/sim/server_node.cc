#include "sim/server_node.h"

#include <fmt/format.h>

#include <utility>

namespace pawl::sim {
namespace {

constexpr const char* kDirectory = "/pawl-data";

store::journal::Settings small_segments() {
  store::journal::Settings settings;
  settings.segment_bytes = store::journal::kSegmentBytesMin;
  settings.space_reserve = 0;
  return settings;
}

}  // namespace

ServerNode::ServerNode(World& world, Rate rate)
    : world_(world), rate_(rate), random_(world.random().next()) {}
ServerNode::~ServerNode() = default;

Result<void> ServerNode::start() {
  PAWL_ASSERT(!up());
  disk_.restart(world_.random());
  auto journal = store::journal::Journal::open(disk_, kDirectory, small_segments(), random_);
  if (!journal) return journal.error();
  journal_ = std::move(*journal);
  ++life_;
  dying_ = paused_ = turn_due_ = false;
  arrived_.clear();
  server::EngineSettings settings;
  settings.core.hash_seed = world_.random().next();
  engine_ = std::make_unique<server::Engine>(
      settings,
      server::EngineParts{*journal_, *this, random_, *this, log_, [this](const Error&) { dying_ = true; }});
  const auto loaded = engine_->load();
  if (!loaded) return loaded.error();
  world_.note(
      fmt::format("pawld starts: {} leases, last token {}", totals().leases, totals().last_token.value));
  turn_soon();
  housekeeping();
  return {};
}

// The helper thread's work, at moments of chance.
void ServerNode::housekeeping() {
  world_.after(world_.between(Millis(1), Millis(30)), [this, life = life_] {
    if (life != life_ || !up()) return;
    if (!paused_) journal_->background_step();
    if (!disk_.has_power()) return crashed("the power goes during housekeeping");
    housekeeping();
  });
}

void ServerNode::crashed(const char* how) {
  world_.note(fmt::format("pawld: {}", how));
  ++life_;
  ++crashes_;
  engine_.reset();
  journal_.reset();
  network_->break_all();
}

void ServerNode::kill() {
  if (!up()) return;
  disk_.kill_process();
  crashed("is killed");
}

void ServerNode::cut_power() {
  if (!up()) return;
  disk_.cut_power();
  crashed("the power goes");
}

void ServerNode::cut_power_soon(std::uint64_t operations) {
  if (up()) disk_.cut_power_at(operations);
}

void ServerNode::pause(Nanos duration) {
  if (!up() || paused_) return;
  world_.note("pawld pauses");
  paused_ = true;
  world_.after(duration, [this, life = life_] {
    if (life != life_) return;
    world_.note("pawld goes on");
    paused_ = false;
    for (Arrival& arrival : std::exchange(arrived_, {})) {
      arrival.hangup ? on_hangup(arrival.link) : on_bytes(arrival.link, std::move(arrival.bytes));
    }
    turn_soon();
  });
}

bool ServerNode::on_connect(LinkId link) {
  if (!up() || paused_) return false;
  return engine_->connected(server::ConnectionId{link}, "client");
}

void ServerNode::on_bytes(LinkId link, std::string bytes) {
  if (!up()) return;
  if (paused_) return arrived_.push_back({link, false, std::move(bytes)});
  engine_->received(server::ConnectionId{link}, bytes);
  turn_soon();
}

void ServerNode::on_hangup(LinkId link) {
  if (!up()) return;
  if (paused_) return arrived_.push_back({link, true, {}});
  engine_->hangup(server::ConnectionId{link});
  turn_soon();
}

std::size_t ServerNode::send(server::ConnectionId connection, std::string_view bytes) {
  network_->send_to_client(connection.value, std::string(bytes));
  return bytes.size();
}

void ServerNode::close(server::ConnectionId connection) {
  network_->close_by_server(connection.value);
}

server::ClockReading ServerNode::read() {
  const Nanos local = rate_.local(world_.now());
  // The wall clock is for people and does what it likes.
  const auto wall = static_cast<std::uint64_t>(1'700'000'000'000 + (local.count() / 777'777) % 10'000'000);
  return {local, UnixMs{wall}};
}

// What arrives within a moment is served in one turn: group commit.
void ServerNode::turn_soon() {
  if (std::exchange(turn_due_, true)) return;
  world_.after(world_.between(std::chrono::microseconds(1), std::chrono::microseconds(300)),
               [this, life = life_] {
                 if (life != life_ || !up()) return;
                 turn_due_ = false;
                 if (!paused_) turn();
               });
}

void ServerNode::turn() {
  engine_->run_turn();
  if (dying_ || !disk_.has_power()) return crashed("the store failed in the middle of a turn");
  wake_at(engine_->patience());
}

void ServerNode::wake_at(Nanos delay) {
  if (delay <= Nanos(0)) return turn_soon();
  world_.after(std::min<Nanos>(delay, server::kWakeEvery), [this, life = life_, wake = ++wake_] {
    if (life == life_ && wake == wake_ && up()) turn_soon();
  });
}

}  // namespace pawl::sim
