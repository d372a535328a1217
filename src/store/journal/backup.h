// A backup: everything that was durable at one moment, in a directory of its own, which is not a
// store: to serve from it would issue tokens again that were issued after it was made. restore.h
// makes a new store from it.
//
//   checkpoint-<sequence>   every record, in one checkpoint (checkpoint.h)
//   backup.meta             a small file (small_file.h), written last: u64 incarnation, u64 sequence, u64 last number
//                           used, u64 segment bytes, u64 bytes of the checkpoint, u64 wait ms, u64 made at (Unix ms),
//                           text writer
//
// Valid: both files are, they fit each other, and nothing else is there.
#pragma once

#include <string>

#include "base/types.h"
#include "store/file.h"
#include "store/store.h"

namespace pawl::store::journal {

struct BackupMeta {
  Incarnation incarnation;
  std::uint64_t sequence = 0;
  std::uint64_t last_number = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t checkpoint_bytes = 0;
  Millis wait{0};
  UnixMs at;
  std::string writer;
};

// Durable when it returns. The number of bytes in the file.
Result<std::uint64_t> write_backup_meta(Files& files, const std::string& directory,
                                        const BackupMeta& meta);

// Reads and checks all of a backup, and shows every record to `visitor`. Changes nothing. An error
// names the file, and where it is damaged the offset.
Result<BackupMeta> read_backup(Files& files, const std::string& directory, Visitor& visitor);

[[nodiscard]] Result<bool> is_backup(Files& files, const std::string& directory);

}  // namespace pawl::store::journal
