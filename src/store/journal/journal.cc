#include "store/journal/journal.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mutants.h"
#include "store/journal/create.h"
#include "store/journal/recovery.h"

namespace pawl::store::journal {
namespace {

// Backups that were given up and still hang. Each keeps a thread and the files that it reads.
constexpr std::size_t kHangingBackupsMax = 4;

Result<void> prepare_directory(Files& files, const std::string& directory,
                               const Settings& settings) {
  if (!settings.must_exist) return files.make_directory(directory);
  const auto there = files.exists(directory);
  if (!there) return there.error();
  if (!*there)
    return Error{Code::kInvalid,
                 directory + ": missing, and a store must exist there (--must-exist)"};
  return {};
}

Error invalid_segment_bytes() {
  return Error{Code::kInvalid, "segment_bytes: must be a multiple of 4096, at least " +
                                   std::to_string(kSegmentBytesMin)};
}

// A new store here would issue tokens again that the restored store was meant to skip.
Error unfinished_restore(const std::string& directory) {
  return Error{
      Code::kInvalid,
      directory +
          ": a restore into this directory did not finish; run the same pawld restore again"};
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(Files& files, const std::string& directory,
                                               const Settings& settings, Random& random) {
  if (settings.segment_bytes < kSegmentBytesMin || settings.segment_bytes % kBlock != 0) {
    return invalid_segment_bytes();
  }
  if (auto prepared = prepare_directory(files, directory, settings); !prepared)
    return prepared.error();
  // Checked before locking, too: the lock leaves a file behind, which must not happen in a
  // directory that is not Pawl's.
  if (const auto found = classify(files, directory); !found) return found.error();
  auto lock = files.lock_directory(directory);
  if (!lock) return lock.error();
  const auto found = classify(files, directory);
  if (!found) return found.error();
  if (*found == DirectoryKind::kUnfinishedRestore) return unfinished_restore(directory);
  const bool fresh = *found == DirectoryKind::kEmpty;
  if (fresh && settings.must_exist) {
    return Error{Code::kInvalid,
                 directory + ": empty, and a store must exist there (is the volume mounted?)"};
  }
  const auto identity =
      fresh ? create_store(files, directory,
                           Identity{Incarnation{random.next()}, settings.segment_bytes})
            : read_identity(files, directory);
  if (!identity) return identity.error();
  return std::unique_ptr<Journal>(
      new Journal(files, directory, settings, std::move(*lock), *identity, fresh));
}

Journal::Journal(Files& files, std::string directory, const Settings& settings,
                 std::unique_ptr<DirectoryLock> lock, const Identity& identity, bool fresh)
    : files_(files),
      directory_(std::move(directory)),
      settings_(settings),
      lock_(std::move(lock)),
      identity_(identity),
      fresh_(fresh) {}

// A backup that still runs on its thread must not call this object any more.
Journal::~Journal() {
  if (backup_) backup_->give_up();
}

Result<Loaded> Journal::load(Visitor& visitor) {
  PAWL_ASSERT(!active_ && !closed_);
  auto recovered = recover(files_, directory_, identity_);
  if (!recovered) return recovered.error();
  if (auto visited = visit(files_, directory_, *recovered, visitor); !visited)
    return visited.error();
  auto inventory = repair(files_, directory_, identity_, *recovered);
  if (!inventory) return inventory.error();

  chain_ = recovered->chain;
  const HighWater known = recovered->high_water.value;
  maintenance_ = std::make_unique<Maintenance>(files_, directory_, identity_, settings_,
                                               std::move(*inventory));
  const auto opened = with_space_of_a_spare([&]() -> Result<void> {
    auto high_water = HighWaterFile::open(files_, directory_, recovered->high_water);
    if (!high_water) return high_water.error();
    high_water_ = std::move(*high_water);
    return {};
  });
  if (!opened) return opened.error();
  if (known.clean) {
    // From the next batch on the sequence in the file is no longer exact.
    const HighWater unclean{known.end, known.sequence, false};
    if (auto written = with_space_of_a_spare([&] { return high_water_->write(unclean); }); !written)
      return written.error();
  }
  const ActiveSegment& active = recovered->active;
  auto file = files_.open_durable(path_in(directory_, segment_name(active.header.segment)));
  if (!file) return file.error();
  active_ = SegmentWriter::resume(std::move(*file), active.header, active.end.offset);
  PAWL_ASSERT(last_sequence() >= known.sequence);
  // An earlier version could reserve numbers beyond the last that there is.
  used_ = reserved_end_ = std::min(known.end, limits::kTokenMax);
  maintenance_->check_space();
  return Loaded{identity_.incarnation, used_, last_sequence(), fresh_, known.clean};
}

void Journal::submit(const Batch& batch, BatchId id, Sink& sink) {
  PAWL_ASSERT(active_ && !closed_);
  if (!failure_ && waiting_.empty()) {
    const auto committed = commit(batch);
    if (committed) return sink.durable(id);
    if (committed.error().code != Code::kUnavailable) failure_ = committed.error();
  }
  // After a failure nothing is tried again, and every batch fails, those that wait first.
  waiting_.push_back(Waiting{batch, id});
  batches_wait_.store(true);
  if (failure_) pump(sink);
}

void Journal::pump(Sink& sink) {
  while (!waiting_.empty()) {
    if (!failure_) {
      const auto committed = commit(waiting_.front().batch);
      if (!committed && committed.error().code == Code::kUnavailable) return;
      if (!committed) failure_ = committed.error();
    }
    const BatchId id = waiting_.front().id;
    waiting_.pop_front();
    if (failure_) {
      sink.failed(id, *failure_);
    } else {
      sink.durable(id);
    }
  }
  batches_wait_.store(false);
}

Result<void> Journal::commit(const Batch& batch) {
  if (maintenance_->failed()) return maintenance_->failure();
  if (batch.covered() > reserved_end_ && !PAWL_MUTANT(token_block_not_reserved)) {
    if (auto reserved = reserve(batch.covered()); !reserved) return reserved;
  }
  used_ = std::max(used_, batch.covered());
  // A planted bug skips the reservation; the text of an assertion must not name it.
  const bool unreserved = PAWL_MUTANT(token_block_not_reserved);
  PAWL_ASSERT(used_ <= reserved_end_ || unreserved);
  if (!active_->fits(batch.bytes().size())) {
    if (auto switched = switch_segment(batch.bytes().size()); !switched) return switched;
  }
  return active_->append(batch.bytes(), batch.covered(), buffer_, chain_);
}

Result<void> Journal::reserve(std::uint64_t covered) {
  const std::uint64_t end =
      std::max(covered, std::min(covered + limits::kTokenBlock, limits::kTokenMax));
  PAWL_ASSERT(end > reserved_end_);
  const HighWater reserved{end, last_sequence(), false};
  if (auto written = with_space_of_a_spare([&] { return high_water_->write(reserved); }); !written)
    return written;
  reserved_end_ = end;
  return {};
}

bool Journal::reserve_ahead() {
  if (reserved_end_ >= limits::kTokenMax || reserved_end_ - used_ >= limits::kTokenBlock / 2)
    return true;
  const std::uint64_t checks = maintenance_->space_checks();
  if (unreserved_since_ == checks) return false;
  const auto reserved = reserve(used_);
  unreserved_since_ = reserved ? 0 : checks;
  if (reserved || reserved.error().code == Code::kUnavailable) return reserved.has_value();
  failure_ = reserved.error();
  return true;  // The next batch reports it.
}

// The file has its space already, unless the file system moves what is overwritten (copy on write).
Result<void> Journal::with_space_of_a_spare(const std::function<Result<void>()>& write) {
  auto written = write();
  if (written || written.error().code != Code::kUnavailable) return written;
  if (!maintenance_->release_reserved_space()) return written;
  return write();
}

Result<void> Journal::switch_segment(std::size_t batch_bytes) {
  auto spare = maintenance_->take_spare(stored_bytes(batch_bytes));
  if (!spare) return spare.error();
  const ClosedSegment closed{active_->segment(), chain_};
  PAWL_ASSERT(spare->segment == closed.segment + 1);
  SegmentHeader header;
  header.previous_crc = chain_.crc;
  header.incarnation = identity_.incarnation.value;
  header.segment = spare->segment;
  header.first_sequence = chain_.next_sequence;
  header.bytes = spare->bytes;
  auto begun = SegmentWriter::begin(std::move(spare->file), header, buffer_, chain_);
  if (!begun) return begun.error();
  active_ = std::move(*begun);
  maintenance_->add_closed(closed);
  return {};
}

bool Journal::has_room() {
  PAWL_ASSERT(maintenance_ != nullptr);
  if (failure_ || maintenance_->failed()) return true;
  if (!waiting_.empty() || !maintenance_->has_room()) return false;
  return unreserved_since_ == 0 || reserve_ahead();
}

bool Journal::prepare_grant() {
  return has_room() && (failure_ || reserve_ahead());
}

Damage Journal::damage() const {
  PAWL_ASSERT(maintenance_ != nullptr);
  return maintenance_->damage_found();
}

bool Journal::wants_state() const {
  return active_ && !closed_ && !failure_ && waiting_.empty() && maintenance_->wants_state();
}

// The checkpoint replaces every segment before the one that begins here.
void Journal::take_state(const Batch& state) {
  PAWL_ASSERT(wants_state());
  if (auto switched = switch_segment(0); !switched) {
    if (switched.error().code != Code::kUnavailable) failure_ = switched.error();
    return;  // For lack of space: the caller is asked again.
  }
  maintenance_->checkpoint_from(state, used_);
}

std::optional<Space> Journal::space() const {
  PAWL_ASSERT(maintenance_ != nullptr);
  return maintenance_->space();
}

Result<void> Journal::close() {
  if (closed_ || !active_) return {};
  closed_ = true;
  if (backup_) {
    backup_->give_up();
    if (!run_backup_) backup_->clean_up();  // No thread runs it.
  }
  maintenance_->stop();
  if (failure_) return *failure_;
  if (maintenance_->failed()) return maintenance_->failure();
  for (; !waiting_.empty(); waiting_.pop_front()) {
    if (auto committed = commit(waiting_.front().batch); !committed) return committed;
  }
  const HighWater exact{used_, last_sequence(), true};
  return with_space_of_a_spare([&] { return high_water_->write(exact); });
}

// --- Backups -------------------------------------------------------------------------------------

Result<void> Journal::begin_backup(const BackupOrder& order) {
  PAWL_ASSERT(active_ && !closed_);
  if (backup_) return Error{Code::kBusy, "a backup is already in progress"};
  if (!waiting_.empty())
    return Error{Code::kUnavailable, "not everything is durable yet, for lack of disk space"};
  if (auto free = check_given_up(order.directory); !free) return free;
  auto pinned = std::make_unique<PinnedFiles>(files_);
  auto source =
      maintenance_->pin(ClosedSegment{active_->segment(), chain_, active_->offset()}, *pinned);
  if (!source) return source.error();
  auto job = std::make_unique<BackupJob>(*pinned, std::move(*source), order,
                                         BackupJob::Facts{used_, settings_.space_reserve});
  backup_ = std::make_shared<BackupRun>(
      std::move(pinned), std::move(job), order.directory,
      BackupRun::Callbacks{
          .release = [this] { maintenance_->unpin(); },
          .damaged = [this](const Error& error) { maintenance_->report_damage(error); },
          .wake =
              [this] {
                if (Waker* waker = waker_.load(); waker != nullptr) waker->wake();
              }});
  if (run_backup_) run_backup_(backup_);
  return {};
}

// One that hangs may still write to its directory, or give it its name, when its disk answers.
Result<void> Journal::check_given_up(const std::string& directory) {
  std::erase_if(given_up_, [](const auto& run) { return run.expired(); });
  for (const auto& run : given_up_) {
    const auto hanging = run.lock();
    if (hanging && hanging->is_for(directory))
      return Error{Code::kBusy, directory + ": an earlier backup to it still hangs"};
  }
  if (given_up_.size() < kHangingBackupsMax) return {};
  return Error{Code::kBusy,
               std::to_string(given_up_.size()) +
                   " earlier backups still hang; repair their disks, or restart pawld"};
}

std::optional<Result<BackupDone>> Journal::finished_backup() {
  if (!backup_) return {};
  auto outcome = backup_->outcome();
  if (outcome) backup_.reset();
  return outcome;
}

std::uint64_t Journal::backup_steps() const {
  return backup_ ? backup_->steps() : 0;
}

void Journal::abandon_backup() {
  if (!backup_) return;
  backup_->give_up();
  given_up_.push_back(backup_);
  backup_.reset();
}

bool Journal::backup_step() {
  return backup_ && backup_->step();
}

Result<std::optional<std::string>> Journal::machine_mark() {
  return read_machine_mark(files_, directory_);
}

Result<void> Journal::set_machine_mark(const std::string& mark) {
  return write_machine_mark(files_, directory_, mark);
}

bool Journal::background_step() {
  PAWL_ASSERT(maintenance_ != nullptr);
  return maintenance_->step();
}

void Journal::check_space() {
  PAWL_ASSERT(maintenance_ != nullptr);
  maintenance_->check_space();
  if (!batches_wait_.load()) return;
  if (Waker* waker = waker_.load(); waker != nullptr) waker->wake();
}

void Journal::on_work(std::function<void()> wake) {
  PAWL_ASSERT(maintenance_ != nullptr);
  maintenance_->on_work(std::move(wake));
}

}  // namespace pawl::store::journal
