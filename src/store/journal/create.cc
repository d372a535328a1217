#include "store/journal/create.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"
#include "store/journal/checkpoint.h"
#include "store/journal/format.h"
#include "store/journal/high_water.h"
#include "store/journal/maintenance.h"
#include "store/journal/segment.h"

namespace pawl::store::journal {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What an empty directory may contain: a fresh volume has lost+found, and the lock is made first.
// `store.creating.tmp` is the very first step of a creation.
bool may_be_in_empty_directory(const std::string& name) {
  return name == kLockFile || name == "lost+found" || name == std::string(kCreatingFile) + ".tmp" ||
         name == std::string(kRestoringFile) + ".tmp";
}

// Removes what an interrupted attempt left: every file of Pawl's, except the marker and the lock.
Result<void> remove_leftovers(Files& files, const std::string& directory, std::string_view marker) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!is_pawl_file(name) || name == marker || name == kLockFile) continue;
    if (auto removed = files.remove(path_in(directory, name)); !removed) return removed;
  }
  return {};
}

// The initial records are the first checkpoint. The chain starts there with the incarnation, which
// no other store has.
Result<ChainPosition> write_initial_checkpoint(Files& files, const std::string& directory,
                                               const Identity& identity,
                                               const InitialState& initial) {
  PAWL_ASSERT(std::is_sorted(initial.records.begin(), initial.records.end()));
  ChainPosition chain{initial.sequence + 1, 0};
  if (initial.records.empty() && initial.sequence == 0) return chain;
  CheckpointHeader header;
  header.chain_crc = chain.crc = static_cast<std::uint32_t>(identity.incarnation.value);
  header.incarnation = identity.incarnation.value;
  header.sequence = initial.sequence;
  header.next_segment = kFirstSegment;
  header.covered = initial.high_water;
  const std::string path = path_in(directory, checkpoint_name(initial.sequence));
  auto writer = CheckpointWriter::create(files, path + ".tmp", header);
  if (!writer) return writer.error();
  for (const auto& [key, value] : initial.records) writer->add(key, value);
  if (auto finished = writer->finish(); !finished) return finished.error();
  if (auto named = files.rename(path + ".tmp", path); !named) return named.error();
  if (auto synced = files.sync_directory(directory); !synced) return synced.error();
  return chain;
}

Result<void> write_first_segment(Files& files, const std::string& directory,
                                 const Identity& identity, ChainPosition chain) {
  if (auto written = prewrite_segment(files, directory, kFirstSegment, identity.segment_bytes);
      !written)
    return written;
  auto file = files.open_durable(path_in(directory, segment_name(kFirstSegment)));
  if (!file) return file.error();
  SegmentHeader header;
  header.previous_crc = chain.crc;
  header.incarnation = identity.incarnation.value;
  header.segment = kFirstSegment;
  header.first_sequence = chain.next_sequence;
  header.bytes = identity.segment_bytes;
  AlignedBuffer buffer;
  const auto begun = SegmentWriter::begin(std::move(*file), header, buffer, chain);
  if (!begun) return begun.error();
  return {};
}

constexpr std::uint64_t kSequenceStride = std::uint64_t{1} << 40;

Result<void> check_not_a_store(Files& files, const std::string& directory) {
  const auto found = classify(files, directory);
  if (!found) return found.error();
  if (*found == DirectoryKind::kStore) {
    return Error{Code::kInvalid,
                 directory + ": holds a store already; a restore never replaces a store"};
  }
  return {};
}

}  // namespace

Result<DirectoryKind> classify(Files& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  if (contains(*names, kIdentityFile)) return DirectoryKind::kStore;
  if (contains(*names, kBackupFile)) {
    return Error{
        Code::kInvalid,
        directory +
            ": is a backup; serving from it would issue tokens again. Create a store from it "
            "with: pawld restore --from " +
            directory + " --data NEW-DIRECTORY"};
  }
  if (contains(*names, kRestoringFile)) return DirectoryKind::kUnfinishedRestore;
  if (contains(*names, kCreatingFile)) return DirectoryKind::kEmpty;
  for (const std::string& name : *names) {
    if (may_be_in_empty_directory(name)) continue;
    if (is_pawl_file(name)) {
      return Error{Code::kInvalid,
                   path_in(directory, kIdentityFile) + ": missing, although " + name +
                       " is there; refusing to treat the directory as an empty store"};
    }
    return Error{Code::kInvalid,
                 directory + ": holds " + name +
                     ", which is not Pawl's, and no store; give Pawl a directory of its own"};
  }
  return DirectoryKind::kEmpty;
}

Result<Identity> create_store(Files& files, const std::string& directory, const Identity& identity,
                              const InitialState& initial) {
  PAWL_ASSERT(initial.marker == kCreatingFile || initial.marker == kRestoringFile);
  // From here until the rename below, the marker says that this is not a store yet.
  if (auto marked = write_identity(files, directory, initial.marker, identity); !marked)
    return marked.error();
  if (auto cleared = remove_leftovers(files, directory, initial.marker); !cleared)
    return cleared.error();
  const auto chain = write_initial_checkpoint(files, directory, identity, initial);
  if (!chain) return chain.error();
  if (auto begun = write_first_segment(files, directory, identity, *chain); !begun)
    return begun.error();
  const HighWater high_water{initial.high_water, initial.sequence, true};
  if (auto written = create_high_water(files, directory, high_water); !written)
    return written.error();
  const std::string marker = path_in(directory, initial.marker);
  if (auto named = files.rename(marker, path_in(directory, kIdentityFile)); !named)
    return named.error();
  if (auto synced = files.sync_directory(directory); !synced) return synced.error();
  return identity;
}

std::uint64_t sequence_after(std::uint64_t sequence) {
  if (PAWL_MUTANT(restored_sequence_goes_back)) return sequence;
  const std::uint64_t next = (sequence / kSequenceStride + 1) * kSequenceStride;
  PAWL_ASSERT(next > sequence);
  return next;
}

Result<void> create_restored_store(Files& files, const std::string& directory,
                                   const Identity& identity, InitialState initial) {
  if (auto made = files.make_directory(directory); !made) return made;
  // Checked before locking, too: the lock leaves a file behind, which must not happen in a
  // directory that is not Pawl's.
  if (auto checked = check_not_a_store(files, directory); !checked) return checked;
  const auto lock = files.lock_directory(directory);
  if (!lock) return lock.error();
  if (auto checked = check_not_a_store(files, directory); !checked) return checked;
  initial.marker = kRestoringFile;
  const auto created = create_store(files, directory, identity, initial);
  if (!created) return created.error();
  return {};
}

}  // namespace pawl::store::journal
