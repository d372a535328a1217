// The interface between the store and the disk: everything the journal needs of a file system, and
// nothing else. PosixFiles is the real one; SimulatedDisk (testlib/) loses, tears and reorders what
// was not synced.
//
// Durable means: survives a power cut. A file's bytes are durable after sync() (or at once, when
// opened with open_durable). A new name, a rename and a removal are durable after sync_directory().
//
// Errors, whose detail always names the path:
//   kBusy         the directory is locked by another process
//   kUnavailable  no space, no inode, over a quota, or no file descriptor; nothing is broken, and
//                 the same call may succeed later
//   kDenied       the path cannot be used: no such parent, not a directory, no permission
//   kUnknown      anything else, above all an I/O error: the content of the disk is not known
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::store {

// The unit of the journal's writes: offset, length and memory address of a durable write are
// multiples of it, as O_DIRECT requires.
inline constexpr std::size_t kBlock = 4096;

// One open file. Not for use by two threads at once. Closed when destroyed; closing makes nothing
// durable.
class File {
 public:
  virtual ~File() = default;
  // Fills `into` from `offset`. Returns the number of bytes read, which is less than into.size()
  // only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<char> into) = 0;
  // Writes all of `bytes` at `offset`, growing the file if necessary.
  virtual Result<void> write(std::uint64_t offset, std::string_view bytes) = 0;
  // Makes the bytes and the size of the file durable.
  virtual Result<void> sync() = 0;
  virtual Result<std::uint64_t> size() = 0;
};

// Locks a directory against other processes while it exists.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// Safe to call from two threads, as long as they do not use the same file.
class Files {
 public:
  virtual ~Files() = default;

  virtual Result<bool> exists(const std::string& path) = 0;
  // Creates `directory`, whose parent exists, durably. Succeeds if it exists already.
  virtual Result<void> make_directory(const std::string& directory) = 0;
  // The names of the entries of `directory`, in no particular order, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;

  // Opens an empty file for writing; the content of an existing file is lost.
  virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
  virtual Result<std::unique_ptr<File>> open_read(const std::string& path) = 0;
  // Opens an existing file; every write is durable when it returns. Offset, length and memory of a
  // write must be aligned to kBlock.
  virtual Result<std::unique_ptr<File>> open_durable(const std::string& path) = 0;

  // Replaces `to` atomically.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  // Succeeds if the file does not exist.
  virtual Result<void> remove(const std::string& path) = 0;
  // Moves a directory with its content, atomically, to a name that does not exist (kInvalid if it
  // does). Both names have the same parent.
  virtual Result<void> rename_directory(const std::string& from, const std::string& to) = 0;
  // Removes an empty directory. Succeeds if it does not exist.
  virtual Result<void> remove_directory(const std::string& directory) = 0;
  // A failed sync is never kUnavailable: what is on the disk is not known then.
  virtual Result<void> sync_directory(const std::string& directory) = 0;

  // The number of bytes that an unprivileged user may still write.
  virtual Result<std::uint64_t> free_space(const std::string& directory) = 0;
  // The number of files that an unprivileged user may still create; UINT64_MAX where the file
  // system does not count them.
  virtual Result<std::uint64_t> free_files(const std::string& directory) = 0;
  // Whether `directory` is `ancestor` or lies below it, by whatever path it is named. Both exist.
  virtual Result<bool> is_within(const std::string& directory, const std::string& ancestor) = 0;
  // Whether two existing directories share their free space, as on one volume.
  virtual Result<bool> share_space(const std::string& directory, const std::string& other) = 0;
  // Allows one process per directory: kBusy, with the other's pid, if there is one. While the lock
  // exists, sync_directory() of this directory needs no file descriptor.
  virtual Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory) = 0;
};

// The directory that holds `path`; trailing slashes are ignored.
[[nodiscard]] inline std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file in a directory that lock_directory() uses.
inline constexpr std::string_view kLockFile = "lock";

}  // namespace pawl::store
