#include "store/journal/identity.h"

#include <algorithm>

#include "base/bytes.h"
#include "store/journal/format.h"
#include "store/journal/small_file.h"

namespace pawl::store::journal {
namespace {

constexpr std::string_view kIdentityMagic = "PAWLSTOR";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// May stand in a directory that is called empty: a fresh volume has lost+found, and we make the
// lock first. `store.creating.tmp` is the very first step of a creation.
bool is_nothing(const std::string& name) {
  return name == kLockFile || name == "lost+found" || name == std::string(kCreatingFile) + ".tmp" ||
         name == std::string(kRestoringFile) + ".tmp";
}

}  // namespace

Result<void> write_identity(Files& files, const std::string& directory, std::string_view name,
                            const Identity& identity) {
  std::string body;
  put_u64(body, identity.incarnation.value);
  put_u64(body, identity.segment_bytes);
  return write_small_file(files, directory, name, kIdentityMagic, body);
}

Result<Identity> read_identity(Files& files, const std::string& directory) {
  const auto body = read_small_file(files, directory, kIdentityFile, kIdentityMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  Identity identity;
  identity.incarnation.value = in.u64();
  identity.segment_bytes = in.u64();
  if (!in.done() || identity.segment_bytes < kSegmentBytesMin ||
      identity.segment_bytes % kBlock != 0) {
    return damage(path_in(directory, kIdentityFile), 0, "makes no sense");
  }
  return identity;
}

Result<Directory> classify(Files& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  if (contains(*names, kIdentityFile)) return Directory::kStore;
  if (contains(*names, kBackupFile)) {
    return Error{Code::kInvalid,
                 directory +
                     ": is a backup, and serving from it would issue tokens again; make a "
                     "store from it with: pawld restore --from " +
                     directory + " --data NEW-DIRECTORY"};
  }
  if (contains(*names, kRestoringFile)) return Directory::kUnfinishedRestore;
  if (contains(*names, kCreatingFile)) return Directory::kEmpty;
  for (const std::string& name : *names) {
    if (is_nothing(name)) continue;
    if (is_ours(name)) {
      return Error{Code::kInvalid,
                   path_in(directory, kIdentityFile) + ": missing, though " + name +
                       " is there: refusing to take the directory for an empty store"};
    }
    return Error{Code::kInvalid,
                 directory + ": holds " + name +
                     ", which is not Pawl's, and no Pawl store; give Pawl a directory of its own"};
  }
  return Directory::kEmpty;
}

}  // namespace pawl::store::journal
