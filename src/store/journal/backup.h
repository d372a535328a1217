// A backup: everything that was durable at one moment, in a directory of its own. A backup is not a
// store: serving from it would issue tokens again that were issued after it was made. create.h
// makes a new store from it.
//
//   checkpoint-<sequence>   every record, in one checkpoint (checkpoint.h)
//   backup.meta             a small file (small_files.h), written last
//
// The body of backup.meta:
//
//   u64  incarnation
//   u64  sequence of the last batch
//   u64  last number used
//   u64  segment bytes
//   u64  bytes of the checkpoint
//   u64  wait in ms: how long a restored service must grant nothing
//   u64  made at, in Unix ms
//   text writer
//
// Valid: both files are valid, they belong together, and nothing else is in the directory.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/types.h"
#include "store/file.h"
#include "store/store.h"

namespace pawl::store::journal {

// backup.meta. The fields are those of BackupOrder and BackupDone (store.h).
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

// Writes backup.meta, durably. Returns the number of bytes in the file.
Result<std::uint64_t> write_backup_meta(Files& files, const std::string& directory,
                                        const BackupMeta& meta);

// A backup is written as DIR.partial, and renamed when it is complete.
// Creates DIR.partial; what an interrupted backup left there is removed first. kDenied: the parent
// of DIR is missing. kInvalid: DIR exists.
Result<void> make_partial_backup(Files& files, const std::string& directory);
// Removes it, if it is there. Files that no backup wrote are not ours and stay: kInvalid names one.
Result<void> remove_partial_backup(Files& files, const std::string& directory);

using SortedRecords = std::map<std::string, std::string, std::less<>>;
// Makes a whole backup of records that are in no journal. Of `meta` checkpoint_bytes is filled in.
// All or nothing.
Result<BackupDone> write_backup(Files& files, const std::string& directory, BackupMeta meta,
                                const SortedRecords& records);

// Reads and checks all of a backup, and passes every record to `visitor`. Changes nothing. An error
// names the file and, if it is damaged, the offset.
Result<BackupMeta> read_backup(Files& files, const std::string& directory, Visitor& visitor);

// Whether there is a backup.meta.
[[nodiscard]] Result<bool> is_backup(Files& files, const std::string& directory);

}  // namespace pawl::store::journal
