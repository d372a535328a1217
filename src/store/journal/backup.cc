#include "store/journal/backup.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"
#include "store/journal/checkpoint.h"
#include "store/journal/format.h"
#include "store/journal/small_files.h"

namespace pawl::store::journal {
namespace {

constexpr std::string_view kBackupMagic = "PAWLBKUP";

class RecordCount final : public Visitor {
 public:
  Result<void> record(std::string_view /*key*/, std::string_view /*value*/) override {
    ++records;
    return {};
  }
  std::uint64_t records = 0;
};

std::string partial_name(const std::string& directory) {
  return directory + ".partial";
}

// A file of a backup, finished or not.
bool is_part_of_backup(std::string_view name) {
  if (name.ends_with(".tmp")) name.remove_suffix(4);
  return name == kBackupFile || checkpoint_of(name).has_value();
}

Result<BackupMeta> read_meta(Files& files, const std::string& directory) {
  const auto body = read_small_file(files, directory, kBackupFile, kBackupMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  BackupMeta meta;
  meta.incarnation.value = in.u64();
  meta.sequence = in.u64();
  meta.last_number = in.u64();
  meta.segment_bytes = in.u64();
  meta.checkpoint_bytes = in.u64();
  meta.wait = Millis(in.u64());
  meta.at.value = in.u64();
  meta.writer = in.text();
  if (!in.done() || meta.segment_bytes < kSegmentBytesMin || meta.segment_bytes % kBlock != 0)
    return damage(path_in(directory, kBackupFile), 0, "malformed content");
  return meta;
}

// Checks that the directory holds backup.meta, the checkpoint that it names, and nothing else.
Result<void> check_files(Files& files, const std::string& directory, const BackupMeta& meta) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name == kBackupFile || name == checkpoint_name(meta.sequence)) continue;
    return Error{Code::kInvalid, path_in(directory, name) + ": is not part of this backup"};
  }
  return {};
}

Result<void> check_checkpoint(const std::string& path, const CheckpointHeader& header,
                              const BackupMeta& meta) {
  const bool fits = header.incarnation == meta.incarnation.value &&
                    header.sequence == meta.sequence && header.bytes == meta.checkpoint_bytes &&
                    header.covered <= meta.last_number;
  if (!fits) return damage(path, 0, "does not belong to this backup.meta");
  return {};
}

Result<void> visit_records(CheckpointReader& reader, Visitor& visitor) {
  visitor.expect(reader.header().records);
  for (;;) {
    const auto piece = reader.next_piece();
    if (!piece) return piece.error();
    if (piece->empty()) return {};
    for (std::string_view rest = *piece; !rest.empty();) {
      const auto entry = take_operation(rest);
      if (!entry) return entry.error();
      reader.count(1);
      if (auto seen = visitor.record(entry->key, entry->value); !seen) return seen;
    }
  }
}

Result<CheckpointHeader> write_checkpoint(Files& files, const std::string& path,
                                          const BackupMeta& meta, const SortedRecords& records) {
  CheckpointHeader header;
  header.incarnation = meta.incarnation.value;
  header.sequence = meta.sequence;
  header.covered = meta.last_number;
  auto writer = CheckpointWriter::create(files, path, header);
  if (!writer) return writer.error();
  for (const auto& [key, value] : records) {
    writer->add(key, value);
    if (!writer->piece_is_full()) continue;
    if (auto written = writer->write_piece(); !written) return written.error();
  }
  if (auto finished = writer->finish(); !finished) return finished.error();
  return writer->header();
}

// Reads all of it back, and gives it its name.
Result<BackupDone> complete(Files& files, const std::string& directory) {
  const std::string partial = partial_name(directory);
  RecordCount counted;
  const auto meta = read_backup(files, partial, counted);
  if (!meta) return meta.error();
  const auto described = files.open_read(path_in(partial, kBackupFile));
  if (!described) return described.error();
  const auto meta_bytes = (*described)->size();
  if (!meta_bytes) return meta_bytes.error();
  if (auto named = files.rename_directory(partial, directory); !named) return named.error();
  if (auto synced = files.sync_directory(parent_of(directory)); !synced) return synced.error();
  return BackupDone{2, meta->checkpoint_bytes + *meta_bytes, counted.records, meta->sequence,
                    meta->last_number};
}

Result<BackupDone> write_and_complete(Files& files, const std::string& directory, BackupMeta& meta,
                                      const SortedRecords& records) {
  const std::string partial = partial_name(directory);
  const auto written =
      write_checkpoint(files, path_in(partial, checkpoint_name(meta.sequence)), meta, records);
  if (!written) return written.error();
  meta.checkpoint_bytes = written->bytes;
  if (const auto described = write_backup_meta(files, partial, meta); !described)
    return described.error();
  return complete(files, directory);
}

}  // namespace

Result<void> make_partial_backup(Files& files, const std::string& directory) {
  const std::string parent = parent_of(directory);
  const auto parent_there = files.exists(parent);
  if (!parent_there) return parent_there.error();
  if (!*parent_there)
    return Error{Code::kDenied, parent + ": missing; a backup creates only its own directory"};
  const auto taken = files.exists(directory);
  if (!taken) return taken.error();
  if (*taken) {
    return Error{Code::kInvalid,
                 directory + ": exists already; a backup goes into a directory of its own"};
  }
  if (auto removed = remove_partial_backup(files, directory); !removed) return removed;
  return files.make_directory(partial_name(directory));
}

Result<void> remove_partial_backup(Files& files, const std::string& directory) {
  const std::string partial = partial_name(directory);
  const auto there = files.exists(partial);
  if (!there) return there.error();
  if (!*there) return {};
  const auto names = files.list(partial);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!is_part_of_backup(name)) {
      return Error{Code::kInvalid, partial + ": holds " + name +
                                       ", which no backup wrote; remove it and try again"};
    }
    if (auto removed = files.remove(path_in(partial, name)); !removed) return removed;
  }
  return files.remove_directory(partial);
}

Result<BackupDone> write_backup(Files& files, const std::string& directory, BackupMeta meta,
                                const SortedRecords& records) {
  if (auto made = make_partial_backup(files, directory); !made) return made.error();
  auto done = write_and_complete(files, directory, meta, records);
  if (done) return done;
  Error error = done.error();
  if (auto removed = remove_partial_backup(files, directory); !removed)
    error.detail += "; what was written of it could not be removed: " + removed.error().detail;
  return error;
}

Result<std::uint64_t> write_backup_meta(Files& files, const std::string& directory,
                                        const BackupMeta& meta) {
  PAWL_ASSERT(meta.wait >= Millis(0) && meta.checkpoint_bytes > 0);
  std::string body;
  put_u64(body, meta.incarnation.value);
  put_u64(body, meta.sequence);
  put_u64(body, meta.last_number);
  put_u64(body, meta.segment_bytes);
  put_u64(body, meta.checkpoint_bytes);
  put_u64(body, static_cast<std::uint64_t>(meta.wait.count()));
  put_u64(body, meta.at.value);
  put_text(body, meta.writer);
  if (auto written = write_small_file(files, directory, kBackupFile, kBackupMagic, body); !written)
    return written.error();
  return std::uint64_t{kMagicLength + 2 * sizeof(std::uint32_t) + body.size()};
}

Result<BackupMeta> read_backup(Files& files, const std::string& directory, Visitor& visitor) {
  auto meta = read_meta(files, directory);
  if (!meta) return meta;
  if (auto right = check_files(files, directory, *meta); !right) return right.error();
  const std::string path = path_in(directory, checkpoint_name(meta->sequence));
  const auto there = files.exists(path);
  if (!there) return there.error();
  if (!*there) return Error{Code::kInvalid, path + ": missing"};
  auto reader = CheckpointReader::open(files, path);
  if (!reader) return reader.error();
  if (auto fits = check_checkpoint(path, reader->header(), *meta); !fits) return fits.error();
  if (auto visited = visit_records(*reader, visitor); !visited) return visited.error();
  return meta;
}

Result<bool> is_backup(Files& files, const std::string& directory) {
  return files.exists(path_in(directory, kBackupFile));
}

}  // namespace pawl::store::journal
