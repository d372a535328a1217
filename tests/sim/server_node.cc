#include "sim/server_node.h"

#include <fmt/format.h>

#include <utility>

namespace pawl::sim {
namespace {

constexpr std::uint64_t kRoomy = std::uint64_t{1} << 40;
constexpr server::ConnectionId kWatcher{std::uint64_t{1} << 60};

store::journal::Settings small_segments() {
  store::journal::Settings settings;
  settings.segment_bytes = store::journal::kSegmentBytesMin;
  settings.checkpoint_after = 2;
  settings.space_reserve = 4 * store::journal::kSegmentBytesMin;
  return settings;
}

}  // namespace

ServerNode::ServerNode(World& world, Rate rate, Millis ttl, std::vector<std::string>& faults,
                       std::vector<Pause>& pauses)
    : world_(world),
      rate_(rate),
      faults_(faults),
      pauses_(pauses),
      random_(world.random().next()),
      speed_(world.random().next()),
      watch_(ttl, faults) {
  PAWL_ASSERT(disk_.make_directory(kBackups));
}
ServerNode::~ServerNode() = default;

// --- Starting ------------------------------------------------------------------------------------

void ServerNode::start() {
  PAWL_ASSERT(!up());
  disk_.set_capacity(kRoomy);
  auto loaded = try_start();
  if (!loaded && flip_) {
    // The operator reads which file it is, and brings it back from somewhere.
    if (loaded.error().detail.find(directory_) == std::string::npos) {
      faults_.push_back("P6: the refusal does not name the file: " + loaded.error().detail);
    }
    world_.note([&] { return "pawld refuses to start: " + loaded.error().detail; });
    ++refusals_;
    disk_.flip(flip_->path, flip_->offset, flip_->bit);
    flip_.reset();
    loaded = try_start();
  }
  if (!loaded) {
    engine_.reset();
    journal_.reset();
    faults_.push_back("P6: pawld does not start: " + loaded.error().detail);
    return;
  }
  // A flipped bit in the very last batch looks like a torn write; nothing else may be missing.
  const std::uint64_t may_lose = std::exchange(flip_, std::nullopt) ? 1 : 0;
  if (may_lose != 0) watch_.last_batch_may_be_gone();
  if (loaded->sequence + may_lose < sequence_) {
    faults_.push_back(fmt::format("P6: pawld starts with batch {}, {} was acknowledged",
                                  loaded->sequence, sequence_));
  }
  serve(*loaded);
}

Result<store::Loaded> ServerNode::try_start() {
  engine_.reset();
  journal_.reset();
  power_was_lost_ ? disk_.restart(world_.random()) : disk_.kill_process();
  auto journal = store::journal::Journal::open(disk_, directory_, small_segments(), random_);
  if (!journal) return journal.error();
  journal_ = std::move(*journal);
  server::EngineSettings settings;
  settings.ttl_max = kMaxTtl;
  settings.delay_max = kMaxDelay;
  settings.core.hash_seed = world_.random().next();
  // Some do little in a turn, so that what is postponed meets everything else.
  if (settings.core.hash_seed % 4 == 0) settings.work_per_turn = 2 * limits::kWorkPerCommand;
  engine_ = std::make_unique<server::Engine>(
      settings, server::EngineParts{*journal_, *this, random_, *this, log_,
                                    [this](const Error&) { dying_ = true; }});
  return engine_->load();
}

void ServerNode::serve(const store::Loaded& loaded) {
  ++life_;
  dying_ = paused_ = turn_due_ = false;
  arrived_.clear();
  hung_up_.clear();
  waits_on_.clear();
  asked_on_.clear();
  unread_.clear();
  sequence_ = batches_before_ = loaded.sequence;
  world_.note([&] {
    return fmt::format("pawld starts: {} leases, last token {}", totals().leases,
                       totals().last_token.value);
  });
  charge();
  engine_->connected(kWatcher, "watcher");
  engine_->received(kWatcher, watch_.start(local()));
  // With a small budget its OBSERVE may be postponed; nobody else is served before it.
  while (up() && !watch_.observing()) turn();
  if (!up()) return;
  turn_soon();
  maintenance();
  stall(std::exchange(spent_, Nanos(0)));
}

// --- Faults --------------------------------------------------------------------------------------

void ServerNode::crashed(const char* how, Ended ended) {
  world_.note([&] { return fmt::format("pawld: {}", how); });
  power_was_lost_ = ended == Ended::kMachine;
  ++life_;
  ++crashes_;
  spent_ = Nanos(0);
  engine_.reset();
  journal_.reset();
  network_->break_all();
}

void ServerNode::kill() {
  if (!up()) return;
  crashed("is killed", Ended::kProcess);
}

void ServerNode::kill_soon(std::uint64_t operations) {
  if (up()) disk_.kill_process_at(operations);
}

void ServerNode::cut_power() {
  if (!up()) return;
  disk_.cut_power();
  crashed("the power goes", Ended::kMachine);
}

void ServerNode::cut_power_soon(std::uint64_t operations) {
  if (up()) disk_.cut_power_at(operations);
}

void ServerNode::fail_disk_soon(std::uint64_t operations) {
  if (up())
    disk_.fail_at(operations, Error{Code::kUnknown, "/pawl-data: write: Input/output error"});
}

void ServerNode::fill_disk(bool full) {
  if (!up()) return;
  world_.note(full ? "the disk is full" : "the disk has room again");
  disk_.set_capacity(full ? disk_.used() : kRoomy);
}

void ServerNode::flip_a_bit() {
  if (up() || flip_) return;
  disk_.restart(world_.random());
  const auto names = disk_.list(directory_);
  if (!names || names->empty()) return;
  const std::string path = directory_ + "/" + (*names)[world_.random().below(names->size())];
  const std::string content = disk_.content(path);
  if (content.empty()) return;
  // Much of a segment is zeros; half of the flips hit the end of what is written, where the last
  // batch is.
  const std::size_t end = std::min(content.find_last_not_of('\0'), content.size() - 1);
  const std::uint64_t luck = world_.random().next();
  const std::uint64_t offset =
      world_.chance(50) ? luck % content.size() : end - luck % std::min<std::size_t>(end + 1, 100);
  flip_ = Flip{path, offset, static_cast<unsigned>(world_.random().below(8))};
  disk_.flip(flip_->path, flip_->offset, flip_->bit);
  world_.note([&] { return fmt::format("a bit flips in {} at {}", flip_->path, flip_->offset); });
}

std::optional<pawld::Restored> ServerNode::lose_and_restore(const std::string& backup) {
  disk_.cut_power();
  if (up()) crashed("its machine is lost", Ended::kMachine);
  power_was_lost_ = true;
  flip_.reset();
  disk_.restart(world_.random());
  disk_.set_capacity(kRoomy);
  directory_ = fmt::format("/pawl-data-{}", crashes_);
  const auto restored = pawld::restore_backup(disk_, random_, {.from = backup}, directory_);
  operations_seen_ = disk_.operations();  // Nothing waits for those.
  if (!restored) {
    faults_.push_back("P6: a backup that was reported complete is not restored: " +
                      restored.error().detail);
    return std::nullopt;
  }
  world_.note([&] {
    return fmt::format("{} is restored: last token {}, {} leases are void", backup,
                       restored->last_token.value, restored->void_leases);
  });
  return *restored;
}

void ServerNode::pause(Nanos duration) {
  if (!up() || paused_) return;
  world_.note("pawld pauses");
  stall(duration);
}

void ServerNode::suspend(Nanos duration) {
  if (!up() || paused_) return;
  world_.note("pawld's machine sleeps");
  stall(duration, Clock::kStops);
}

void ServerNode::jump_wall_clock(Nanos by) {
  world_.note("the wall clock jumps");
  wall_jumped_ += by;
}

void ServerNode::stall(Nanos duration, Clock clock) {
  if (duration <= Nanos(0) || paused_) return;
  paused_ = true;
  if (duration >= Millis(50)) pauses_.push_back({world_.now(), world_.now() + duration});
  world_.after(duration, [this, clock, life = life_, before = local()] {
    if (life != life_) return;
    paused_ = false;
    if (clock == Clock::kStops) slept_ += local() - before;
    for (Arrival& arrival : std::exchange(arrived_, {})) {
      arrival.hangup ? on_hangup(arrival.link) : on_bytes(arrival.link, std::move(arrival.bytes));
    }
    turn_soon();
  });
}

// --- The network ---------------------------------------------------------------------------------

bool ServerNode::on_connect(LinkId link, const std::string&) {
  if (!up()) return false;
  return engine_->connected(server::ConnectionId{link}, "client");
}

void ServerNode::on_bytes(LinkId link, std::string bytes) {
  if (!up()) return;
  if (paused_) return arrived_.push_back({link, false, std::move(bytes)});
  engine_->received(server::ConnectionId{link}, bytes);
  unread_.insert(link);
  turn_soon();
}

void ServerNode::on_hangup(LinkId link) {
  if (!up()) return;
  if (paused_) return arrived_.push_back({link, true, {}});
  engine_->hangup(server::ConnectionId{link});
  hung_up_.insert(link);
  // What came in the same turn may still be granted at once; what was in line before may not.
  const auto wait = waits_on_.find(link);
  if (wait != waits_on_.end() && asked_on_[wait->second] == 1 && !unread_.contains(link))
    watch_.hung_up(wait->second);
  turn_soon();
}

void ServerNode::expect_wait(LinkId link, const std::string& owner) {
  waits_on_[link] = owner;
  if (++asked_on_[owner] > 1) watch_.came_back(owner);
}

std::size_t ServerNode::send(server::ConnectionId connection, std::string_view bytes) {
  if (connection == kWatcher) {
    watch_.received(bytes, local());
    return bytes.size();
  }
  if (hung_up_.contains(connection.value) &&
      bytes.find("\r\ngranted\r\n") != std::string_view::npos) {
    faults_.push_back("G6: a waiter that was known to have hung up is granted");
  }
  if (spent_ ==
      Nanos(0)) {  // It is on its way, whatever becomes of pawld in the rest of this turn.
    network_->send_to_client(connection.value, std::string(bytes));
    return bytes.size();
  }
  world_.after(spent_, [this, life = life_, link = connection.value, text = std::string(bytes)] {
    if (life == life_) network_->send_to_client(link, text);
  });
  return bytes.size();
}

void ServerNode::close(server::ConnectionId connection) {
  if (connection == kWatcher) return;
  world_.after(spent_, [this, life = life_, link = connection.value] {
    if (life == life_) network_->close_by_server(link);
  });
}

// --- Time ----------------------------------------------------------------------------------------

// Most writes take a moment, some a while, and once in a long time one hangs.
void ServerNode::charge() {
  for (; operations_seen_ < disk_.operations(); ++operations_seen_) {
    const std::uint64_t luck = speed_.below(2000);
    const std::uint64_t most_us = luck == 0 ? 1'500'000 : luck < 30 ? 40'000 : 150;
    spent_ += std::chrono::microseconds(10 + speed_.below(most_us));
  }
}

server::ClockReading ServerNode::read() {
  charge();
  // The wall clock is for people and does what it likes.
  const auto wall =
      static_cast<std::uint64_t>(1'700'000'000'000 + (local() + wall_jumped_) / Millis(1));
  return {local(), UnixMs{wall}};
}

// The helper thread's work, at moments of chance.
void ServerNode::maintenance() {
  world_.after(world_.between(Millis(1), Millis(30)), [this, life = life_] {
    if (life != life_ || !up()) return;
    if (!paused_) {
      journal_->background_step();
      journal_->backup_step();
      journal_->check_space();
      operations_seen_ = disk_.operations();  // Another thread's time.
    }
    if (!disk_.has_power()) return crashed("the power goes during maintenance", Ended::kMachine);
    if (!disk_.has_process()) return crashed("is killed during maintenance", Ended::kProcess);
    maintenance();
  });
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
  const std::uint64_t postponed = engine_->telemetry().postponed;
  engine_->run_turn();
  // What was postponed is served in a later turn, whatever becomes of its connection meanwhile.
  if (engine_->telemetry().postponed == postponed) unread_.clear();
  charge();
  if (dying_ || !disk_.has_power() || !disk_.has_process())
    return crashed("the store failed in the middle of a turn",
                   disk_.has_process() ? Ended::kMachine : Ended::kProcess);
  sequence_ = batches_before_ + engine_->telemetry().batches;
  stall(std::exchange(spent_, Nanos(0)));
  wake_at(engine_->patience());
}

void ServerNode::wake_at(Nanos delay) {
  if (delay <= Nanos(0)) return turn_soon();
  world_.after(std::min<Nanos>(delay, server::kWakeEvery), [this, life = life_, wake = ++wake_] {
    if (life == life_ && wake == wake_ && up()) turn_soon();
  });
}

}  // namespace pawl::sim
