// Makes one checkpoint in bounded steps: merges the old checkpoint and the closed segments after it
// into a new file. It reads and writes files only and does not use the loop's memory. Used for the
// store itself (maintenance.h) and for backups (backup_job.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/file.h"
#include "store/journal/checkpoint.h"
#include "store/journal/overlay.h"
#include "store/journal/segment.h"
#include "store/journal/small_files.h"

namespace pawl::store::journal {

// What a checkpoint is made from. None of these files may be removed while the job runs.
struct CheckpointSource {
  std::string directory;
  Identity identity;
  std::optional<std::uint64_t> checkpoint;  // The old one, if there is one.
  // Not empty. They follow directly on the old checkpoint, or are all segments there ever were.
  std::vector<ClosedSegment> closed;

  // Of the last batch that the new checkpoint will cover.
  [[nodiscard]] std::uint64_t sequence() const { return closed.back().end.next_sequence - 1; }
};

class CheckpointJob {
 public:
  // The new checkpoint is written to the directory `into`.
  CheckpointJob(Files& files, CheckpointSource source, std::string into);
  // The same from memory: `state` has a put for every record that is live at the end of the closed
  // segments, and `covered` is the greatest number used up to there. Nothing of `source` is read.
  CheckpointJob(Files& files, CheckpointSource source, std::string into, const Batch& state,
                std::uint64_t covered);

  // Does one bounded piece of work. Returns true once the new checkpoint is durable under its name.
  Result<bool> step();
  // After an error of step(): the source could not be read, and nothing is wrong with what was
  // written.
  [[nodiscard]] bool source_failed() const { return source_failed_; }
  [[nodiscard]] bool from_memory() const { return from_memory_; }
  // Removes what an unfinished job wrote.
  Result<void> abandon();

  [[nodiscard]] std::uint64_t sequence() const { return source_.sequence(); }
  [[nodiscard]] const std::vector<ClosedSegment>& closed() const { return source_.closed; }

 private:
  enum class Phase { kOpenOld, kReadSegments, kBeginMerge, kMerge, kDone };

  Result<void> open_old();
  Result<void> read_segment();
  Result<void> begin_merge();
  // Writes one piece. Returns true when both inputs are used up.
  Result<bool> merge_piece();
  // Reads the next entry of the old checkpoint. Returns whether old_entry_ is set.
  Result<bool> fetch_old();
  Result<void> finish();
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string unfinished_path() const;

  Files& files_;
  const CheckpointSource source_;
  const std::string into_;

  Phase phase_ = Phase::kOpenOld;
  const bool from_memory_ = false;
  bool source_failed_ = false;
  std::optional<CheckpointReader> old_;
  std::string_view old_piece_;  // What is left of the old checkpoint's current piece.
  std::optional<Operation> old_entry_;
  SegmentReader reader_;
  ChainPosition chain_;
  std::uint64_t covered_ = 0;
  std::size_t segments_read_ = 0;
  Overlay overlay_;
  std::size_t next_change_ = 0;
  std::optional<CheckpointWriter> writer_;
};

}  // namespace pawl::store::journal
