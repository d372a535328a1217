#include "store/journal/backup_job.h"

#include <utility>

#include "base/assert.h"
#include "store/journal/checkpoint.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20;  // More than any one step writes.

class CountRecords final : public Visitor {
 public:
  Result<void> record(std::string_view /*key*/, std::string_view /*value*/) override {
    ++records;
    return {};
  }
  std::uint64_t records = 0;
};

std::string without_trailing_slashes(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

BackupOrder without_trailing_slashes(BackupOrder order) {
  order.directory = without_trailing_slashes(std::move(order.directory));
  return order;
}

}  // namespace

BackupJob::BackupJob(Files& files, CheckpointSource source, BackupOrder order, const Facts& facts)
    : files_(files),
      order_(without_trailing_slashes(std::move(order))),
      partial_(order_.directory + ".partial"),
      data_directory_(source.directory),
      identity_(source.identity),
      facts_(facts),
      copy_(files, std::move(source), partial_) {}

Result<std::optional<BackupDone>> BackupJob::step() {
  auto stepped = do_step();
  if (stepped) return stepped;
  Error error = stepped.error();
  if (auto removed = abandon(); !removed) {
    error.detail += "; what was written of it could not be removed: " + removed.error().detail;
  }
  return error;
}

Result<void> BackupJob::abandon() {
  if (!std::exchange(made_partial_, false)) return {};
  (void)copy_.abandon();  // Closes its file; the file itself is removed below.
  return remove_partial_backup(files_, order_.directory);
}

Result<std::optional<BackupDone>> BackupJob::do_step() {
  switch (phase_) {
    case Phase::kPrepare:
      if (auto prepared = prepare(); !prepared) return prepared.error();
      phase_ = Phase::kCopy;
      break;
    case Phase::kCopy: {
      if (auto enough = check_space(); !enough) return enough.error();
      const auto copied = copy_.step();
      if (!copied) return copied.error();
      if (*copied) phase_ = Phase::kVerify;
      break;
    }
    case Phase::kVerify: {
      const auto finished = finish();
      if (!finished) return finished.error();
      phase_ = Phase::kDone;
      return std::optional(*finished);
    }
    case Phase::kDone:
      break;
  }
  return std::optional<BackupDone>();
}

Result<void> BackupJob::prepare() {
  const std::string parent = parent_of(order_.directory);
  const auto parent_there = files_.exists(parent);
  if (!parent_there) return parent_there.error();
  if (!*parent_there)
    return Error{Code::kDenied, parent + ": missing; a backup creates only its own directory"};
  // Under one of pawld's own names there it would keep the store from being opened again.
  const auto inside = files_.is_within(parent, data_directory_);
  if (!inside) return inside.error();
  if (*inside) {
    return Error{Code::kInvalid, order_.directory + ": is inside the data directory " +
                                     data_directory_ +
                                     "; choose a directory elsewhere, best on another disk"};
  }
  if (auto made = make_partial_backup(files_, order_.directory); !made) return made;
  PAWL_ASSERT(!made_partial_);
  made_partial_ = true;
  const auto shares = files_.share_space(partial_, data_directory_);
  if (!shares) return shares.error();
  shares_space_ = *shares;
  return {};
}

Result<void> BackupJob::check_space() {
  if (!shares_space_) return {};
  const auto space = files_.free_space(partial_);
  if (!space) return space.error();
  if (*space >= facts_.space_reserve + kStepBytes) return {};
  return Error{Code::kUnavailable,
               partial_ +
                   ": no space: the store is on the same disk, and stops granting with less than " +
                   std::to_string(facts_.space_reserve) + " bytes free"};
}

Result<BackupDone> BackupJob::finish() {
  PAWL_ASSERT(made_partial_);
  const std::string checkpoint = path_in(partial_, checkpoint_name(copy_.sequence()));
  const auto reader = CheckpointReader::open(files_, checkpoint);
  if (!reader) return reader.error();
  BackupMeta meta;
  meta.incarnation = identity_.incarnation;
  meta.sequence = copy_.sequence();
  meta.last_number = facts_.last_number;
  meta.segment_bytes = identity_.segment_bytes;
  meta.checkpoint_bytes = reader->header().bytes;
  meta.wait = order_.wait;
  meta.at = order_.at;
  meta.writer = order_.writer;
  const auto meta_bytes = write_backup_meta(files_, partial_, meta);
  if (!meta_bytes) return meta_bytes.error();

  CountRecords counted;
  if (const auto read = read_backup(files_, partial_, counted); !read) return read.error();
  PAWL_ASSERT(counted.records == reader->header().records);
  if (auto named = files_.rename_directory(partial_, order_.directory); !named)
    return named.error();
  made_partial_ = false;
  if (auto synced = files_.sync_directory(parent_of(order_.directory)); !synced)
    return synced.error();
  return BackupDone{2, meta.checkpoint_bytes + *meta_bytes, counted.records, meta.sequence,
                    meta.last_number};
}

// --- BackupRun -----------------------------------------------------------------------------------

BackupRun::BackupRun(std::unique_ptr<PinnedFiles> files, std::unique_ptr<BackupJob> job,
                     std::string directory, Callbacks callbacks)
    : files_(std::move(files)),
      job_(std::move(job)),
      directory_(without_trailing_slashes(std::move(directory))),
      callbacks_(std::move(callbacks)) {}

std::optional<Result<BackupDone>> BackupRun::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

void BackupRun::give_up() {
  const std::lock_guard lock(mutex_);
  if (given_up_ || outcome_) return;
  given_up_ = true;
  callbacks_.release();
}

void BackupRun::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  outcome_ = error;
  callbacks_.release();
  callbacks_.wake();
}

bool BackupRun::is_for(const std::string& directory) const {
  return without_trailing_slashes(directory) == directory_;
}

void BackupRun::clean_up() {
  (void)job_->abandon();  // Tidiness only: the next backup there removes it, too.
}

bool BackupRun::step() {
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return false;
  }
  const auto stepped = job_->step();
  steps_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  if (given_up_) {
    lock.unlock();
    clean_up();
    return false;
  }
  if (stepped && !*stepped) return true;
  outcome_ = stepped ? Result<BackupDone>(**stepped) : Result<BackupDone>(stepped.error());
  if (!stepped && job_->source_failed() && stepped.error().code != Code::kUnavailable)
    callbacks_.damaged(stepped.error());
  callbacks_.release();
  callbacks_.wake();
  return false;
}

}  // namespace pawl::store::journal
