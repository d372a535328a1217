// The seam between the store and the disk: everything the journal asks of a file system, and
// nothing else. PosixFiles is the real one; SimulatedDisk loses, tears and reorders what was not
// synced.
//
// Durable means: survives a power cut. A file's bytes are durable after sync() (or at once, when
// opened with open_durable); its name, a rename and a removal are durable after sync_directory().
//
// Errors: kBusy (locked by another process), kUnavailable (no space: nothing is broken, space may
// return), kDenied (the path cannot be used: no such parent, not a directory, no permission), and
// kUnknown (anything else, an I/O error above all: what the disk holds is not known). The detail
// names the path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::store {

// The unit of the journal's writes: offset, length and memory of a durable write are multiples of
// it (O_DIRECT).
inline constexpr std::size_t kBlock = 4096;

// One open file. Not for use by two threads at once. Closed when destroyed; closing makes nothing
// durable.
class File {
 public:
  virtual ~File() = default;
  // Fills `into` from `offset`; fewer bytes only where the file ends.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<char> into) = 0;
  // Writes all of `bytes` at `offset`, growing the file where needed.
  virtual Result<void> write(std::uint64_t offset, std::string_view bytes) = 0;
  virtual Result<void> sync() = 0;
  virtual Result<std::uint64_t> size() = 0;
};

// Held while it exists.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// Safe to call from two threads, as long as they do not touch the same file.
class Files {
 public:
  virtual ~Files() = default;

  virtual Result<bool> exists(const std::string& path) = 0;
  // Creates `directory` (its parent exists), durably; fine when it is there already.
  virtual Result<void> make_directory(const std::string& directory) = 0;
  // The names of what is in `directory`, in no promised order, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;

  // An empty file for writing; one that was there before loses its bytes.
  virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
  virtual Result<std::unique_ptr<File>> open_read(const std::string& path) = 0;
  // An existing file whose every write is durable when it returns. Offset, length and memory
  // aligned to kBlock.
  virtual Result<std::unique_ptr<File>> open_durable(const std::string& path) = 0;

  virtual Result<void> rename(const std::string& from,
                              const std::string& to) = 0;    // Replaces `to` atomically.
  virtual Result<void> remove(const std::string& path) = 0;  // Fine when it is not there.
  // Moves a directory and all in it, atomically, to a name that is free (kInvalid when it is not);
  // both have one parent.
  virtual Result<void> rename_directory(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove_directory(
      const std::string& directory) = 0;  // Empty; fine when not there.
  virtual Result<void> sync_directory(const std::string& directory) = 0;

  // Bytes an ordinary user may still write.
  virtual Result<std::uint64_t> free_space(const std::string& directory) = 0;
  // Whether what is written under one of two existing directories takes free space from the other.
  virtual Result<bool> share_space(const std::string& directory, const std::string& other) = 0;
  // One process per directory: kBusy, naming the other's pid, when there is one.
  virtual Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory) = 0;
};

// The directory that holds `path`; trailing slashes do not count.
[[nodiscard]] inline std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file in `directory` that lock_directory() uses.
inline constexpr std::string_view kLockFile = "lock";

}  // namespace pawl::store
