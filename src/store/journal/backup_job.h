// Makes one backup (backup.h) in bounded steps, beside a running store.
//
// It reads the old checkpoint, the closed segments, and of the segment in use what was durable when
// the backup was asked for: that part of the file never changes again. To close the segment first
// would spend one (64 MiB) per backup, and make the loop wait where no spare is ready.
//
// All or nothing: everything is written and synced in DIR.partial, read back, and then DIR.partial
// becomes DIR by one rename. What an earlier backup left in DIR.partial when the power went is
// removed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/file.h"
#include "store/journal/backup.h"
#include "store/journal/checkpoint_job.h"
#include "store/store.h"

namespace pawl::store::journal {

class BackupJob {
 public:
  struct Facts {
    std::uint64_t last_number = 0;
    // Kept free when the backup shares its disk with the store: a backup must not stop what it is
    // for.
    std::uint64_t space_reserve = 0;
  };
  // `source` ends with what is read of the segment in use, and nothing of it is freed meanwhile.
  BackupJob(Files& files, CheckpointSource source, BackupOrder order, const Facts& facts);

  // Does one bounded piece; the report once all is done. After an error nothing is left, or the
  // detail says what.
  Result<std::optional<BackupDone>> step();
  // Removes what an unfinished job wrote.
  Result<void> abandon();

 private:
  enum class Phase { kPrepare, kCopy, kVerify, kDone };

  Result<std::optional<BackupDone>> do_step();
  Result<void> prepare();
  Result<void> check_space();
  // Names the backup, once what was written has been read back.
  Result<BackupDone> finish();

  Files& files_;
  const BackupOrder order_;
  const std::string partial_;
  const std::string data_directory_;
  const Identity identity_;
  const Facts facts_;
  CheckpointJob copy_;
  Phase phase_ = Phase::kPrepare;
  bool made_partial_ = false;
  bool shares_space_ = false;
};

}  // namespace pawl::store::journal
