#include "store/journal/checkpoint_job.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"
#include "store/journal/format.h"

namespace pawl::store::journal {

CheckpointJob::CheckpointJob(Files& files, CheckpointSource source, std::string into)
    : files_(files), source_(std::move(source)), into_(std::move(into)), reader_(files) {
  PAWL_ASSERT(!source_.closed.empty());
}

CheckpointJob::CheckpointJob(Files& files, CheckpointSource source, std::string into,
                             const Batch& state, std::uint64_t covered)
    : files_(files),
      source_(std::move(source)),
      into_(std::move(into)),
      phase_(Phase::kBeginMerge),
      from_memory_(true),
      reader_(files),
      chain_(source_.closed.back().end),
      covered_(covered) {
  const auto applied = overlay_.apply_batch(state.bytes());
  PAWL_ASSERT(applied);
}

std::string CheckpointJob::path() const {
  return path_in(into_, checkpoint_name(sequence()));
}
std::string CheckpointJob::unfinished_path() const {
  return path() + ".tmp";
}

Result<bool> CheckpointJob::step() {
  switch (phase_) {
    case Phase::kOpenOld:
      if (auto opened = open_old(); !opened) {
        source_failed_ = true;
        return opened.error();
      }
      phase_ = Phase::kReadSegments;
      return false;
    case Phase::kReadSegments:
      if (auto read = read_segment(); !read) {
        source_failed_ = true;
        return read.error();
      }
      if (segments_read_ == source_.closed.size()) phase_ = Phase::kBeginMerge;
      return false;
    case Phase::kBeginMerge:
      if (auto begun = begin_merge(); !begun) return begun.error();
      phase_ = Phase::kMerge;
      return false;
    case Phase::kMerge: {
      const auto merged = merge_piece();
      if (!merged) return merged.error();
      if (!*merged) return false;
      if (auto finished = finish(); !finished) return finished.error();
      phase_ = Phase::kDone;
      return true;
    }
    case Phase::kDone:
      break;
  }
  return true;
}

Result<void> CheckpointJob::abandon() {
  writer_.reset();
  return files_.remove(unfinished_path());
}

Result<void> CheckpointJob::open_old() {
  if (!source_.checkpoint) return {};
  auto old = CheckpointReader::open(
      files_, path_in(source_.directory, checkpoint_name(*source_.checkpoint)));
  if (!old) return old.error();
  old_ = std::move(*old);
  chain_ = ChainPosition{old_->header().sequence + 1, old_->header().chain_crc};
  covered_ = old_->header().covered;
  return {};
}

Result<void> CheckpointJob::read_segment() {
  PAWL_ASSERT(segments_read_ < source_.closed.size());
  const ClosedSegment& closed = source_.closed[segments_read_++];
  const std::string segment_path = path_in(source_.directory, segment_name(closed.segment));
  auto facts = probe_segment(files_, segment_path, closed.segment, source_.identity.segment_bytes);
  if (!facts) return facts.error();
  if (!facts->header) return damage(segment_path, 0, "the header of a closed segment is missing");
  SegmentHeader& header = *facts->header;
  if (auto follows = check_header(segment_path, header, source_.identity.incarnation, chain_);
      !follows)
    return follows;
  if (closed.bytes != 0) header.bytes = closed.bytes;
  const auto end = reader_.replay(segment_path, header, chain_, [this](const BatchRecord& record) {
    covered_ = std::max(covered_, record.header.covered);
    return overlay_.apply_batch(record.batch);
  });
  if (!end) return end.error();
  // All that was written must have been read: a damaged record at the very end looks like the end.
  if (chain_ != closed.end)
    return damage(segment_path, end->offset, "batches of a closed segment are missing");
  return {};
}

Result<void> CheckpointJob::begin_merge() {
  PAWL_ASSERT(chain_ == source_.closed.back().end && !writer_);
  overlay_.sort();
  CheckpointHeader header;
  header.chain_crc = chain_.crc;
  header.incarnation = source_.identity.incarnation.value;
  header.sequence = sequence();
  header.next_segment = source_.closed.back().segment + 1;
  header.covered = covered_;
  auto writer = CheckpointWriter::create(files_, unfinished_path(), header);
  if (!writer) return writer.error();
  writer_ = std::move(*writer);
  return {};
}

Result<bool> CheckpointJob::fetch_old() {
  if (!old_ || old_entry_) return old_entry_.has_value();
  if (old_piece_.empty()) {
    const auto piece = old_->next_piece();
    if (!piece) return piece.error();
    if (piece->empty()) {
      old_.reset();
      return false;
    }
    old_piece_ = *piece;
  }
  const auto entry = take_operation(old_piece_);
  if (!entry) return entry.error();
  old_->count(1);
  old_entry_ = *entry;
  return true;
}

Result<bool> CheckpointJob::merge_piece() {
  PAWL_ASSERT(writer_.has_value());
  const auto changes = overlay_.changes();
  while (!writer_->piece_is_full()) {
    const auto has_old = fetch_old();
    if (!has_old) {
      source_failed_ = true;
      return has_old.error();
    }
    if (next_change_ == changes.size() && !*has_old) return true;
    const bool change_is_due = next_change_ < changes.size() &&
                               (!*has_old || changes[next_change_].key <= old_entry_->key);
    if (!change_is_due) {
      writer_->add(old_entry_->key, old_entry_->value);
      old_entry_.reset();
      continue;
    }
    const Operation& change = changes[next_change_++];
    PAWL_ASSERT(next_change_ == changes.size() || change.key < changes[next_change_].key);
    if (*has_old && change.key == old_entry_->key) old_entry_.reset();
    if (change.put || PAWL_MUTANT(checkpoint_keeps_deleted)) writer_->add(change.key, change.value);
  }
  if (auto written = writer_->write_piece(); !written) return written.error();
  return false;
}

Result<void> CheckpointJob::finish() {
  if (auto finished = writer_->finish(); !finished) return finished;
  writer_.reset();  // Closes the file.
  if (auto renamed = files_.rename(unfinished_path(), path()); !renamed) return renamed;
  return files_.sync_directory(into_);
}

}  // namespace pawl::store::journal
