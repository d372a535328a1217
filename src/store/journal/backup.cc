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

}  // namespace

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
