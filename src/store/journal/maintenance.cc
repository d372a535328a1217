#include "store/journal/maintenance.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kPrewriteStep = std::uint64_t{1} << 20;
// For segments, a checkpoint and small files that are being made.
constexpr std::uint64_t kFilesNeeded = 8;

// Writes the next zeros of a new segment and syncs them: one big flush at the end would delay the
// loop's commits.
Result<void> write_zeros(File& file, std::uint64_t offset, std::uint64_t bytes) {
  PAWL_ASSERT(bytes <= kPrewriteStep);
  static const std::string zeros(kPrewriteStep, '\0');
  if (auto written = file.write(offset, std::string_view(zeros).substr(0, bytes)); !written)
    return written;
  return file.sync();
}

Result<void> name_segment(Files& files, const std::string& directory, const std::string& from,
                          std::uint64_t segment) {
  if (auto renamed = files.rename(from, path_in(directory, segment_name(segment))); !renamed)
    return renamed;
  return files.sync_directory(directory);
}

std::string unfinished_segment(const std::string& directory, std::uint64_t segment) {
  return path_in(directory, segment_name(segment) + ".tmp");
}

}  // namespace

Result<void> prewrite_segment(Files& files, const std::string& directory, std::uint64_t segment,
                              std::uint64_t bytes) {
  const std::string unfinished = unfinished_segment(directory, segment);
  {
    auto file = files.create(unfinished);
    if (!file) return file.error();
    for (std::uint64_t at = 0; at < bytes; at += kPrewriteStep) {
      const std::uint64_t count = std::min(kPrewriteStep, bytes - at);
      if (auto written = write_zeros(**file, at, count); !written) return written;
    }
  }
  return name_segment(files, directory, unfinished, segment);
}

Maintenance::Maintenance(Files& files, std::string directory, const Identity& identity,
                         const Settings& settings, Inventory inventory)
    : files_(files),
      directory_(std::move(directory)),
      identity_(identity),
      settings_(settings),
      next_segment_(inventory.next_segment),
      recyclable_(std::move(inventory.obsolete)),
      spares_(std::move(inventory.spares)),
      checkpoint_(inventory.checkpoint),
      closed_(std::move(inventory.closed)) {
  PAWL_ASSERT(spares_.empty() || spares_.back().segment + 1 == next_segment_);
}

std::string Maintenance::segment_path(std::uint64_t segment) const {
  return path_in(directory_, segment_name(segment));
}

Result<Spare> Maintenance::take_spare(std::uint64_t record_bytes) {
  const std::uint64_t bytes = kBlock + record_bytes;
  const auto take_ready = [&]() -> Result<std::optional<Spare>> {
    const std::lock_guard handover(handover_mutex_);
    if (spares_.empty() || spares_.front().bytes < bytes) return std::optional<Spare>();
    if (!spares_.front().file) {
      auto file = files_.open_durable(segment_path(spares_.front().segment));
      if (!file) return file.error();
      spares_.front().file = std::move(*file);
    }
    std::optional<Spare> spare = std::move(spares_.front());
    spares_.pop_front();
    return spare;
  };
  if (auto spare = take_ready(); !spare || *spare) {
    if (!spare) return spare.error();
    return std::move(**spare);
  }

  const std::lock_guard work(work_mutex_);
  const auto fail = [this](const Error& error) {
    if (error.code == Code::kUnavailable) record_shortage(spare_shortage_, error);
    return error;
  };
  if (bytes > identity_.segment_bytes) {
    auto oversized = make_oversized(bytes);
    if (!oversized) return fail(oversized.error());
    return oversized;
  }
  for (;;) {
    auto spare = take_ready();
    if (!spare) return fail(spare.error());
    if (*spare) return std::move(**spare);
    if (auto stepped = step_spare(); !stepped) return fail(stepped.error());
  }
}

void Maintenance::add_closed(const ClosedSegment& closed) {
  {
    const std::lock_guard handover(handover_mutex_);
    PAWL_ASSERT(closed_.empty() || closed_.back().segment + 1 == closed.segment);
    closed_.push_back(closed);
  }
  if (wake_) wake_();
}

Result<void> Maintenance::release_reserved_space() {
  const std::lock_guard work(work_mutex_);
  abandon_prewrite();
  record_shortage(spare_shortage_, Error{Code::kUnavailable, directory_ + ": no space"});
  if (!recyclable_.empty()) {
    const std::uint64_t segment = recyclable_.back();
    recyclable_.pop_back();
    return files_.remove(segment_path(segment));
  }
  const std::lock_guard handover(handover_mutex_);
  if (spares_.empty())
    return Error{Code::kUnavailable, directory_ + ": no space, and no spare segment to remove"};
  const std::uint64_t segment = spares_.back().segment;
  PAWL_ASSERT(segment + 1 == next_segment_);
  spares_.pop_back();
  next_segment_ = segment;
  return files_.remove(segment_path(segment));
}

Error Maintenance::failure() const {
  const std::lock_guard handover(handover_mutex_);
  PAWL_ASSERT(failure_.has_value());
  return *failure_;
}

void Maintenance::stop() {
  const std::lock_guard work(work_mutex_);
  stopped_ = true;
  abandon_prewrite();
  if (job_) (void)job_->abandon();  // If this fails, the next start removes the file.
  job_.reset();
}

bool Maintenance::step() {
  const std::lock_guard work(work_mutex_);
  if (stopped_ || failed()) return false;
  const auto worked = do_step();
  if (worked) return *worked;
  record_failure(worked.error());
  return !failed();
}

void Maintenance::check_space() {
  const std::lock_guard work(work_mutex_);
  if (stopped_ || failed()) return;
  const auto space = files_.free_space(directory_);
  if (!space) return record_failure(space.error());
  const auto files = files_.free_files(directory_);
  if (!files) return record_failure(files.error());
  const std::uint64_t needed = space_needed();
  free_.store(*space, std::memory_order_relaxed);
  space_needed_.store(needed, std::memory_order_relaxed);
  enough_space_ = *space >= needed && *files >= kFilesNeeded;
  if (enough_space_) {
    spare_shortage_.pausing = checkpoint_shortage_.pausing = false;
  } else {
    const std::lock_guard handover(handover_mutex_);
    short_of_ = *space < needed ? "disk space" : "inodes: only " + std::to_string(*files) + " left";
  }
  space_checks_.fetch_add(1, std::memory_order_relaxed);
  update_room();
}

// A quota, or file descriptors that ran out, cannot be seen in the free space: then there is room
// only once the work that lacked it has succeeded.
void Maintenance::update_room() {
  room_.store(enough_space_ && !spare_shortage_.lasts && !checkpoint_shortage_.lasts,
              std::memory_order_relaxed);
}

std::uint64_t Maintenance::space_needed() const {
  return settings_.space_reserve + (spare_shortage_.lasts ? identity_.segment_bytes : 0);
}

// The greatest number of segments that exist at once: the active one, the spares, those that a
// checkpoint is being made from, and one that is closed meanwhile. Two checkpoints come on top,
// each as large as all live records.
Space Maintenance::space() const {
  const std::uint64_t segments = 1 + settings_.spare_segments + settings_.checkpoint_after + 1;
  const std::lock_guard handover(handover_mutex_);
  return {free_.load(std::memory_order_relaxed), space_needed_.load(std::memory_order_relaxed),
          segments * identity_.segment_bytes + settings_.space_reserve, short_of_};
}

void Maintenance::record_shortage(Shortage& shortage, const Error& error) {
  PAWL_ASSERT(error.code == Code::kUnavailable);
  shortage.begin();
  space_needed_.store(space_needed(), std::memory_order_relaxed);
  {
    const std::lock_guard handover(handover_mutex_);
    short_of_ = error.detail;
  }
  update_room();
}

// Lack of space pauses the work until check_space() resumes it; any other failure is final.
void Maintenance::record_failure(const Error& error) {
  if (error.code == Code::kUnavailable) return record_shortage(spare_shortage_, error);
  const std::lock_guard handover(handover_mutex_);
  failure_ = error;
  failed_.store(true, std::memory_order_release);
}

Result<bool> Maintenance::do_step() {
  if (!covered_.empty()) {
    if (auto freed = free_one(); !freed) return freed.error();
    return true;
  }
  if (spares_are_short()) {
    if (!spare_shortage_.pausing || !recyclable_.empty()) {
      if (auto stepped = step_spare(); !stepped) return stepped.error();
      return true;
    }
  } else if (spare_shortage_.lasts && !spare_shortage_.pausing) {
    spare_shortage_.end();
    update_room();
  }
  if (!checkpoint_shortage_.pausing && checkpoint_is_due()) {
    if (auto stepped = step_checkpoint(); !stepped) return stepped.error();
    return true;
  }
  return false;
}

bool Maintenance::spares_are_short() {
  const std::lock_guard handover(handover_mutex_);
  return spares_.size() < settings_.spare_segments;
}

bool Maintenance::checkpoint_is_due() {
  if (wants_state()) return false;
  const std::lock_guard handover(handover_mutex_);
  return job_ || closed_.size() >= settings_.checkpoint_after;
}

Result<CheckpointSource> Maintenance::pin(const ClosedSegment& active, PinnedFiles& pinned) {
  // Held while the files are opened: none of them is freed before closed_ has changed.
  const std::lock_guard handover(handover_mutex_);
  CheckpointSource source{directory_, identity_, checkpoint_, closed_};
  source.closed.push_back(active);
  if (checkpoint_) {
    if (auto opened = pinned.pin(path_in(directory_, checkpoint_name(*checkpoint_))); !opened)
      return opened.error();
  }
  for (const ClosedSegment& closed : source.closed) {
    if (auto opened = pinned.pin(segment_path(closed.segment)); !opened) return opened.error();
  }
  for (const ClosedSegment& closed : source.closed) pinned_.push_back(closed.segment);
  return source;
}

void Maintenance::unpin() {
  const std::lock_guard handover(handover_mutex_);
  pinned_.clear();
}

void Maintenance::add_spare(Spare spare) {
  const std::lock_guard handover(handover_mutex_);
  PAWL_ASSERT(spares_.empty() || spares_.back().segment + 1 == spare.segment);
  spares_.push_back(std::move(spare));
}

Result<void> Maintenance::step_spare() {
  if (prewrite_) return step_prewrite();
  if (!recyclable_.empty()) return recycle();
  const auto space = files_.free_space(directory_);
  if (!space) return space.error();
  if (*space < identity_.segment_bytes) {
    return Error{Code::kUnavailable, directory_ + ": no space for another segment"};
  }
  return begin_prewrite(next_segment_, identity_.segment_bytes);
}

// The old records in the file name an older segment, so they are never valid (format.h).
Result<void> Maintenance::recycle() {
  const std::string old_path = segment_path(recyclable_.back());
  recyclable_.pop_back();
  if (auto named = name_segment(files_, directory_, old_path, next_segment_); !named) return named;
  auto file = open_spare(next_segment_);
  if (!file) return file.error();
  add_spare(Spare{next_segment_, identity_.segment_bytes, std::move(*file)});
  ++next_segment_;
  return {};
}

Result<void> Maintenance::begin_prewrite(std::uint64_t segment, std::uint64_t bytes) {
  auto file = files_.create(unfinished_segment(directory_, segment));
  if (!file) return file.error();
  PAWL_ASSERT(!prewrite_ && bytes % kBlock == 0);
  prewrite_ = Prewrite{segment, bytes, 0, std::move(*file)};
  return {};
}

Result<void> Maintenance::step_prewrite() {
  const std::uint64_t count = std::min(kPrewriteStep, prewrite_->bytes - prewrite_->written);
  if (auto written = write_zeros(*prewrite_->file, prewrite_->written, count); !written) {
    abandon_prewrite();
    return written;
  }
  prewrite_->written += count;
  PAWL_ASSERT(prewrite_->written <= prewrite_->bytes);
  if (prewrite_->written < prewrite_->bytes) return {};
  return finish_prewrite();
}

Result<void> Maintenance::finish_prewrite() {
  const Prewrite done = std::move(*prewrite_);
  prewrite_.reset();
  const std::string unfinished = unfinished_segment(directory_, done.segment);
  if (auto named = name_segment(files_, directory_, unfinished, done.segment); !named) return named;
  auto file = open_spare(done.segment);
  if (!file) return file.error();
  add_spare(Spare{done.segment, done.bytes, std::move(*file)});
  next_segment_ = done.segment + 1;
  return {};
}

Result<std::unique_ptr<File>> Maintenance::open_spare(std::uint64_t segment) {
  auto file = files_.open_durable(segment_path(segment));
  if (!file && file.error().code == Code::kUnavailable) return std::unique_ptr<File>();
  return file;
}

void Maintenance::abandon_prewrite() {
  if (!prewrite_) return;
  const std::string unfinished = unfinished_segment(directory_, prewrite_->segment);
  prewrite_.reset();
  (void)files_.remove(unfinished);  // If this fails, the next start removes it.
}

// A batch that does not fit in a segment of the usual size gets a segment of its own. It takes the
// id of the first spare, by a rename over that spare's file: before and after, there is one segment
// of that id that is not begun.
Result<Spare> Maintenance::make_oversized(std::uint64_t bytes) {
  PAWL_ASSERT(bytes > identity_.segment_bytes && bytes % kBlock == 0);
  abandon_prewrite();
  // Before it has its name nothing is changed: the spare stays.
  std::uint64_t segment = next_segment_;
  {
    const std::lock_guard handover(handover_mutex_);
    if (!spares_.empty()) segment = spares_.front().segment;
  }
  if (auto written = prewrite_segment(files_, directory_, segment, bytes); !written)
    return written.error();
  auto file = open_spare(segment);
  if (!file) return file.error();
  Spare made{segment, bytes, std::move(*file)};
  const std::lock_guard handover(handover_mutex_);
  if (!spares_.empty()) spares_.pop_front();
  next_segment_ = std::max(next_segment_, segment + 1);
  if (made.file) return made;
  spares_.push_front(std::move(made));
  return Error{Code::kUnavailable, segment_path(segment) + ": no file descriptor to open it"};
}

// --- Checkpoints ---------------------------------------------------------------------------------

Result<void> Maintenance::step_checkpoint() {
  if (!job_) {
    const std::lock_guard handover(handover_mutex_);
    job_.emplace(files_, CheckpointSource{directory_, identity_, checkpoint_, closed_}, directory_);
    return {};
  }
  const auto done = job_->step();
  if (done && !*done) return {};
  if (done) {
    release_covered();
    return {};
  }
  const Error error = done.error();
  if (error.code == Code::kUnavailable) {
    if (job_->from_memory()) ask_for_state();
    (void)job_->abandon();
    job_.reset();
    record_shortage(checkpoint_shortage_, error);
    return {};
  }
  if (!job_->source_failed()) return error;
  (void)job_->abandon();
  job_.reset();
  report_damage(error);
  return {};
}

// The files cannot be read, and a restart could not read them either. But nothing that was written
// has failed, and the loop has all of it in memory.
void Maintenance::report_damage(const Error& error) {
  const std::lock_guard handover(handover_mutex_);
  ++damage_.found;
  damage_.what = error.detail;
  wants_state_.store(true, std::memory_order_release);
}

void Maintenance::ask_for_state() {
  const std::lock_guard handover(handover_mutex_);
  wants_state_.store(true, std::memory_order_release);
}

void Maintenance::checkpoint_from(const Batch& state, std::uint64_t covered) {
  {
    const std::lock_guard work(work_mutex_);
    const std::lock_guard handover(handover_mutex_);
    PAWL_ASSERT(wants_state());
    // One that was being made when a backup found the damage: it reads the same files, or comes from
    // memory and does not cover what was closed since.
    if (job_) (void)job_->abandon();
    job_.emplace(files_, CheckpointSource{directory_, identity_, std::nullopt, closed_}, directory_,
                 state, covered);
    wants_state_.store(false, std::memory_order_release);
  }
  if (wake_) wake_();
}

Damage Maintenance::damage_found() const {
  const std::lock_guard handover(handover_mutex_);
  return damage_;
}

// The new checkpoint is durable: the files that it covers are no longer needed.
void Maintenance::release_covered() {
  PAWL_ASSERT(job_.has_value());
  const std::uint64_t sequence = job_->sequence();
  const std::vector<ClosedSegment>& covered = job_->closed();
  const std::lock_guard handover(handover_mutex_);
  PAWL_ASSERT(covered.size() <= closed_.size());
  PAWL_ASSERT(!checkpoint_ || *checkpoint_ <= sequence);
  const auto replaced = std::exchange(checkpoint_, sequence);
  closed_.erase(closed_.begin(), closed_.begin() + static_cast<std::ptrdiff_t>(covered.size()));
  if (replaced && *replaced != sequence) covered_.push_back({checkpoint_name(*replaced), {}});
  for (const ClosedSegment& closed : covered) {
    // The place of a damaged file is not used again.
    const bool recyclable = !job_->from_memory();
    covered_.push_back(
        {segment_name(closed.segment), recyclable ? std::optional(closed.segment) : std::nullopt});
  }
  if (job_->from_memory() && !wants_state()) damage_.repaired = damage_.found;
  job_.reset();
  checkpoint_shortage_.end();
  update_room();
}

Result<void> Maintenance::free_one() {
  const Covered covered = std::move(covered_.back());
  covered_.pop_back();
  const std::string path = path_in(directory_, covered.name);
  if (covered.segment && recyclable_.size() < settings_.checkpoint_after) {
    auto file = files_.open_read(path);
    const auto size = file ? (*file)->size() : Result<std::uint64_t>(file.error());
    if (!size && size.error().code != Code::kUnavailable) return size.error();
    const std::lock_guard handover(handover_mutex_);
    const bool pinned =
        std::find(pinned_.begin(), pinned_.end(), *covered.segment) != pinned_.end();
    if (size && *size == identity_.segment_bytes && !pinned) {
      recyclable_.push_back(*covered.segment);
      return {};
    }
  }
  return files_.remove(path);
}

}  // namespace pawl::store::journal
