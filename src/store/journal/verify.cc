#include "store/journal/verify.h"

#include <memory>

#include "store/journal/backup.h"
#include "store/journal/create.h"
#include "store/journal/format.h"
#include "store/journal/recovery.h"
#include "store/journal/small_files.h"

namespace pawl::store::journal {
namespace {

Result<void> count_files(Files& files, const std::string& directory, Verified& verified) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!is_pawl_file(name) || name == kLockFile) continue;
    const auto file = files.open_read(path_in(directory, name));
    if (!file) return file.error();
    const auto size = (*file)->size();
    if (!size) return size.error();
    ++verified.files;
    verified.bytes += *size;
  }
  return {};
}

Result<Verified> verify_backup(Files& files, const std::string& directory, Visitor& visitor) {
  const auto meta = read_backup(files, directory, visitor);
  if (!meta) return meta.error();
  return Verified{true, meta->incarnation, meta->sequence, meta->last_number, true, 0, 0};
}

// A store on a read-only disk cannot be locked, and no other process can use it either.
Result<std::unique_ptr<DirectoryLock>> lock_if_possible(Files& files,
                                                        const std::string& directory) {
  auto lock = files.lock_directory(directory);
  if (!lock && lock.error().code == Code::kDenied) return std::unique_ptr<DirectoryLock>();
  return lock;
}

Result<Verified> verify_store(Files& files, const std::string& directory, Visitor& visitor) {
  const auto found = classify(files, directory);
  if (!found) return found.error();
  if (*found == DirectoryKind::kEmpty) return Error{Code::kInvalid, directory + ": holds no store"};
  if (*found == DirectoryKind::kUnfinishedRestore)
    return Error{
        Code::kInvalid,
        directory +
            ": a restore into this directory did not finish; run the same pawld restore again"};
  const auto lock = lock_if_possible(files, directory);
  if (!lock) return lock.error();
  const auto identity = read_identity(files, directory);
  if (!identity) return identity.error();
  const auto recovered = recover(files, directory, *identity);
  if (!recovered) return recovered.error();
  if (auto visited = visit(files, directory, *recovered, visitor); !visited) return visited.error();
  const HighWater& high_water = recovered->high_water.value;
  return Verified{false,
                  identity->incarnation,
                  recovered->chain.next_sequence - 1,
                  high_water.end,
                  high_water.clean,
                  0,
                  0};
}

}  // namespace

Result<Verified> verify(Files& files, const std::string& directory, Visitor& visitor) {
  const auto backup = is_backup(files, directory);
  if (!backup) return backup.error();
  auto verified =
      *backup ? verify_backup(files, directory, visitor) : verify_store(files, directory, visitor);
  if (!verified) return verified;
  if (auto counted = count_files(files, directory, *verified); !counted) return counted.error();
  return verified;
}

}  // namespace pawl::store::journal
