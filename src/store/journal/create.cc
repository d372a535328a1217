#include "store/journal/restore.h"

#include "base/mutants.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kSequenceStride = std::uint64_t{1} << 40;

Result<void> check_vacant(Files& files, const std::string& directory) {
  const auto found = classify(files, directory);
  if (!found) return found.error();
  if (*found == Directory::kStore) {
    return Error{Code::kInvalid,
                 directory + ": holds a store already; a restore never replaces one"};
  }
  return {};
}

}  // namespace

std::uint64_t sequence_after(std::uint64_t sequence) {
  if (PAWL_MUTANT(restored_sequence_goes_back)) return sequence;
  return (sequence / kSequenceStride + 1) * kSequenceStride;
}

Result<void> make_store(Files& files, const std::string& directory, const Identity& identity,
                        Beginning beginning) {
  if (auto made = files.make_directory(directory); !made) return made;
  // Before locking, too: the lock leaves a file behind, which must not happen in somebody else's
  // directory.
  if (auto vacant = check_vacant(files, directory); !vacant) return vacant;
  const auto lock = files.lock_directory(directory);
  if (!lock) return lock.error();
  if (auto vacant = check_vacant(files, directory); !vacant) return vacant;
  beginning.marker = kRestoringFile;
  const auto created = create_store(files, directory, identity, beginning);
  if (!created) return created.error();
  return {};
}

}  // namespace pawl::store::journal
