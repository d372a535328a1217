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

// The space that a small file and its directory entry may take.
constexpr std::uint64_t kSmallFileSpace = 4 * kBlock;

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

Result<Loaded> Journal::load(Visitor& visitor) {
  PAWL_ASSERT(!active_ && !closed_);
  auto recovered = recover(files_, directory_, identity_);
  if (!recovered) return recovered.error();
  if (auto visited = visit(files_, directory_, *recovered, visitor); !visited)
    return visited.error();
  auto inventory = repair(files_, directory_, identity_, *recovered);
  if (!inventory) return inventory.error();

  chain_ = recovered->chain;
  const HighWater known = recovered->high_water;
  maintenance_ = std::make_unique<Maintenance>(files_, directory_, identity_, settings_,
                                               std::move(*inventory));
  if (known.clean) {
    // From the next batch on the sequence in the file is no longer exact.
    if (auto opened = record_high_water(HighWater{known.end, known.sequence, false}); !opened)
      return opened.error();
  }
  const ActiveSegment& active = recovered->active;
  auto file = files_.open_durable(path_in(directory_, segment_name(active.header.segment)));
  if (!file) return file.error();
  active_ = SegmentWriter::resume(std::move(*file), active.header, active.end.offset);
  PAWL_ASSERT(last_sequence() >= known.sequence);
  used_ = reserved_end_ = known.end;
  maintenance_->check_space();
  return Loaded{identity_.incarnation, known.end, last_sequence(), fresh_, known.clean};
}

void Journal::submit(const Batch& batch, BatchId id, Sink& sink) {
  PAWL_ASSERT(active_ && !closed_);
  if (!failure_) {
    if (auto committed = commit(batch); !committed) failure_ = committed.error();
  }
  if (failure_) return sink.failed(id, *failure_);
  sink.durable(id);
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
  const std::uint64_t end = covered + limits::kTokenBlock;
  PAWL_ASSERT(end > reserved_end_);
  if (auto written = record_high_water(HighWater{end, last_sequence(), false}); !written)
    return written;
  reserved_end_ = end;
  return {};
}

Result<void> Journal::record_high_water(const HighWater& high_water) {
  const auto space = files_.free_space(directory_);
  if (!space) return space.error();
  if (*space < kSmallFileSpace) {
    // Before the write, because a write or sync that failed is never tried again.
    const auto released = maintenance_->release_reserved_space();
    if (!released && released.error().code != Code::kUnavailable) return released;
  }
  return write_high_water(files_, directory_, high_water);
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
  return maintenance_->has_room();
}

std::optional<Space> Journal::space() const {
  PAWL_ASSERT(maintenance_ != nullptr);
  return maintenance_->space();
}

Result<void> Journal::close() {
  if (closed_ || !active_) return {};
  closed_ = true;
  backups_.stop();
  maintenance_->stop();
  if (failure_) return *failure_;
  if (maintenance_->failed()) return maintenance_->failure();
  return record_high_water(HighWater{used_, last_sequence(), true});
}

Result<void> Journal::begin_backup(const BackupOrder& order) {
  PAWL_ASSERT(active_ && !closed_);
  if (backups_.busy()) return Error{Code::kBusy, "a backup is already in progress"};
  CheckpointSource source = maintenance_->pin();
  source.closed.push_back(ClosedSegment{active_->segment(), chain_, active_->offset()});
  backups_.begin(std::make_unique<BackupJob>(files_, std::move(source), order,
                                             BackupJob::Facts{used_, settings_.space_reserve}),
                 [this] { maintenance_->unpin(); });
  if (wake_backup_) wake_backup_();
  return {};
}

bool Journal::backup_step() {
  return backups_.step();
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
}

void Journal::on_work(std::function<void()> wake) {
  PAWL_ASSERT(maintenance_ != nullptr);
  maintenance_->on_work(std::move(wake));
}

}  // namespace pawl::store::journal
