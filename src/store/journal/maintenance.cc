#include "store/journal/maintenance.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kPrewriteStep = std::uint64_t{1} << 20;

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
  const auto take_ready = [&]() -> std::optional<Spare> {
    const std::lock_guard handover(handover_mutex_);
    if (spares_.empty() || spares_.front().bytes < bytes) return {};
    Spare spare = std::move(spares_.front());
    spares_.pop_front();
    return spare;
  };
  if (auto spare = take_ready()) return std::move(*spare);

  const std::lock_guard work(work_mutex_);
  if (bytes > identity_.segment_bytes) return make_oversized(bytes);
  for (;;) {
    if (auto spare = take_ready()) return std::move(*spare);
    if (auto stepped = step_spare(); !stepped) return stepped.error();
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
  spares_blocked_ = true;
  space_needed_.store(space_needed(), std::memory_order_relaxed);
  room_.store(false, std::memory_order_relaxed);
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
  const std::uint64_t needed = space_needed();
  free_.store(*space, std::memory_order_relaxed);
  space_needed_.store(needed, std::memory_order_relaxed);
  if (*space >= needed) spares_blocked_ = checkpoint_blocked_ = false;
  room_.store(*space >= needed, std::memory_order_relaxed);
}

std::uint64_t Maintenance::space_needed() const {
  return settings_.space_reserve + (spares_blocked_ ? identity_.segment_bytes : 0);
}

// The greatest number of segments that exist at once: the active one, the spares, those that a
// checkpoint is being made from, and one that is closed meanwhile. Two checkpoints come on top,
// each as large as all live records.
Space Maintenance::space() const {
  const std::uint64_t segments = 1 + settings_.spare_segments + settings_.checkpoint_after + 1;
  return {free_.load(std::memory_order_relaxed), space_needed_.load(std::memory_order_relaxed),
          segments * identity_.segment_bytes + settings_.space_reserve};
}

// Lack of space stops the work until check_space() resumes it; any other failure is final.
void Maintenance::record_failure(const Error& error) {
  if (error.code == Code::kUnavailable) {
    room_.store(false, std::memory_order_relaxed);
    spares_blocked_ = true;
    space_needed_.store(space_needed(), std::memory_order_relaxed);
    return;
  }
  const std::lock_guard handover(handover_mutex_);
  failure_ = error;
  failed_.store(true, std::memory_order_release);
}

Result<bool> Maintenance::do_step() {
  if (spares_are_short() && (!spares_blocked_ || !recyclable_.empty())) {
    if (auto stepped = step_spare(); !stepped) return stepped.error();
    return true;
  }
  if (!checkpoint_blocked_ && checkpoint_is_due()) {
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
  const std::lock_guard handover(handover_mutex_);
  return !pinned_ && (job_ || closed_.size() >= settings_.checkpoint_after);
}

CheckpointSource Maintenance::pin() {
  const std::lock_guard handover(handover_mutex_);
  PAWL_ASSERT(!pinned_);
  pinned_ = true;
  return CheckpointSource{directory_, identity_, checkpoint_, closed_};
}

void Maintenance::unpin() {
  {
    const std::lock_guard handover(handover_mutex_);
    PAWL_ASSERT(pinned_);
    pinned_ = false;
  }
  if (wake_) wake_();
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
  auto file = files_.open_durable(segment_path(next_segment_));
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
  auto file = files_.open_durable(segment_path(done.segment));
  if (!file) return file.error();
  add_spare(Spare{done.segment, done.bytes, std::move(*file)});
  next_segment_ = done.segment + 1;
  return {};
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
  std::uint64_t segment = next_segment_;
  {
    const std::lock_guard handover(handover_mutex_);
    if (!spares_.empty()) {
      segment = spares_.front().segment;
      spares_.pop_front();
    }
  }
  next_segment_ = std::max(next_segment_, segment + 1);
  if (auto written = prewrite_segment(files_, directory_, segment, bytes); !written)
    return written.error();
  auto file = files_.open_durable(segment_path(segment));
  if (!file) return file.error();
  return Spare{segment, bytes, std::move(*file)};
}

Result<void> Maintenance::step_checkpoint() {
  if (!job_) {
    const std::lock_guard handover(handover_mutex_);
    job_.emplace(files_, CheckpointSource{directory_, identity_, checkpoint_, closed_}, directory_);
    return {};
  }
  const auto done = job_->step();
  if (!done) {
    const Error error = done.error();
    if (error.code == Code::kUnavailable) {
      (void)job_->abandon();
      job_.reset();
      checkpoint_blocked_ = true;
      room_.store(false, std::memory_order_relaxed);
      return {};
    }
    return error;
  }
  if (!*done) return {};
  return free_covered();
}

// The new checkpoint is durable: the files that it covers are no longer needed.
Result<void> Maintenance::free_covered() {
  PAWL_ASSERT(job_.has_value());
  const std::uint64_t sequence = job_->sequence();
  const std::vector<ClosedSegment> covered = job_->closed();
  std::optional<std::uint64_t> replaced;
  {
    const std::lock_guard handover(handover_mutex_);
    // Pinned a moment ago. The job stays, done, and the files are freed after unpin().
    if (pinned_) return {};
    PAWL_ASSERT(covered.size() <= closed_.size());
    PAWL_ASSERT(!checkpoint_ || *checkpoint_ <= sequence);
    replaced = std::exchange(checkpoint_, sequence);
    closed_.erase(closed_.begin(), closed_.begin() + static_cast<std::ptrdiff_t>(covered.size()));
  }
  job_.reset();
  if (replaced && *replaced != sequence) {
    if (auto removed = files_.remove(path_in(directory_, checkpoint_name(*replaced))); !removed)
      return removed;
  }
  for (const ClosedSegment& closed : covered) {
    auto file = files_.open_read(segment_path(closed.segment));
    if (!file) return file.error();
    const auto size = (*file)->size();
    if (!size) return size.error();
    if (*size == identity_.segment_bytes && recyclable_.size() < settings_.checkpoint_after) {
      recyclable_.push_back(closed.segment);
    } else if (auto removed = files_.remove(segment_path(closed.segment)); !removed) {
      return removed;
    }
  }
  return {};
}

}  // namespace pawl::store::journal
