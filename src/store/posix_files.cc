#include "store/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/unique_fd.h"

namespace pawl::store {
namespace {

Code code_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return Code::kUnavailable;
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ENAMETOOLONG:
      return Code::kDenied;
    default:
      return Code::kUnknown;
  }
}

Error failure(int error_number, std::string_view doing, const std::string& path) {
  return Error{code_of(error_number), path + ": " + std::string(doing) + ": " +
                                          std::generic_category().message(error_number)};
}
Error failure(std::string_view doing, const std::string& path) {
  return failure(errno, doing, path);
}

class PosixFile : public File {
 public:
  PosixFile(UniqueFd descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t n = ::pread(descriptor_.get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("read at offset " + std::to_string(offset + done), path_);
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    const int error_number = write_all(offset, bytes);
    if (error_number != 0)
      return failure(error_number, "write at offset " + std::to_string(offset), path_);
    return {};
  }

  Result<void> sync() override {
    if (::fdatasync(descriptor_.get()) != 0) return failure("fdatasync", path_);
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat facts {};
    if (::fstat(descriptor_.get(), &facts) != 0) return failure("fstat", path_);
    return static_cast<std::uint64_t>(facts.st_size);
  }

 protected:
  // 0, or the errno.
  int write_all(std::uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n =
          ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      if (n == 0) return EIO;  // Nothing written and no error: the disk is broken.
      offset += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
  }

  UniqueFd descriptor_;
  const std::string path_;
};

// Every write is durable when it returns: by O_DIRECT|O_DSYNC, or by fdatasync where O_DIRECT is
// refused.
class DurableFile final : public PosixFile {
 public:
  // `on_fallback` is called when the file system accepts O_DIRECT at open and refuses it at a
  // write.
  DurableFile(UniqueFd descriptor, std::string path, bool direct,
              std::function<void(const std::string&)> on_fallback)
      : PosixFile(std::move(descriptor), std::move(path)),
        direct_(direct),
        on_fallback_(std::move(on_fallback)) {}

  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    PAWL_ASSERT(offset % kBlock == 0 && bytes.size() % kBlock == 0);
    PAWL_ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % kBlock == 0);
    int error_number = write_all(offset, bytes);
    if (error_number == EINVAL && direct_ && fall_back_to_buffered())
      error_number = write_all(offset, bytes);
    if (error_number != 0)
      return failure(error_number, "write at offset " + std::to_string(offset), path_);
    if (direct_) return {};
    return sync();
  }

 private:
  // Some file systems accept O_DIRECT at open and refuse the first write.
  bool fall_back_to_buffered() {
    const int flags = ::fcntl(descriptor_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor_.get(), F_SETFL, flags & ~O_DIRECT) != 0) return false;
    direct_ = false;
    on_fallback_(path_);
    return true;
  }

  bool direct_;
  const std::function<void(const std::string&)> on_fallback_;
};

class PosixLock final : public DirectoryLock {
 public:
  explicit PosixLock(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  UniqueFd descriptor_;  // Closing it ends the flock.
};

std::string holder_pid(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(descriptor, text.data(), text.size() - 1, 0);
  if (n <= 0) return "unknown";
  std::string pid(text.data(), static_cast<std::size_t>(n));
  while (!pid.empty() && (pid.back() == '\n' || pid.back() == ' ')) pid.pop_back();
  return pid;
}

}  // namespace

Result<bool> PosixFiles::exists(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) return true;
  if (errno == ENOENT) return false;
  return failure("stat", path);
}

Result<void> PosixFiles::make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) return sync_directory(parent_of(directory));
  if (errno != EEXIST) return failure("mkdir", directory);
  return {};
}

Result<std::vector<std::string>> PosixFiles::list(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
  if (!stream) return failure("opendir", directory);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return failure("readdir", directory);
  return names;
}

Result<std::unique_ptr<File>> PosixFiles::create(const std::string& path) {
  UniqueFd descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!descriptor) return failure("create", path);
  return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path));
}

Result<std::unique_ptr<File>> PosixFiles::open_read(const std::string& path) {
  UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) return failure("open", path);
  return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path));
}

void PosixFiles::report_buffered(const std::string& path) {
  std::call_once(reported_, [&] {
    if (on_buffered_) on_buffered_(path);
  });
}

Result<std::unique_ptr<File>> PosixFiles::open_durable(const std::string& path) {
  const auto on_fallback = [this](const std::string& file) { report_buffered(file); };
  if (direct_ == Direct::kWherePossible) {
    UniqueFd descriptor(::open(path.c_str(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC));
    if (descriptor) {
      return std::unique_ptr<File>(
          std::make_unique<DurableFile>(std::move(descriptor), path, true, on_fallback));
    }
    if (errno != EINVAL) return failure("open", path);
  }
  UniqueFd descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor) return failure("open", path);
  report_buffered(path);
  return std::unique_ptr<File>(
      std::make_unique<DurableFile>(std::move(descriptor), path, false, on_fallback));
}

Result<void> PosixFiles::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failure("rename to " + to, from);
  return {};
}

Result<void> PosixFiles::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failure("unlink", path);
  return {};
}

// If another process creates `to` after the check, rename() itself refuses: it never replaces a
// directory that holds files.
Result<void> PosixFiles::rename_directory(const std::string& from, const std::string& to) {
  const auto taken = exists(to);
  if (!taken) return taken.error();
  if (*taken) return Error{Code::kInvalid, to + ": exists already"};
  return rename(from, to);
}

Result<void> PosixFiles::remove_directory(const std::string& directory) {
  if (::rmdir(directory.c_str()) != 0 && errno != ENOENT) return failure("rmdir", directory);
  return {};
}

Result<void> PosixFiles::sync_directory(const std::string& directory) {
  const UniqueFd descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) return failure("open", directory);
  if (::fsync(descriptor.get()) != 0) return failure("fsync", directory);
  return {};
}

Result<std::uint64_t> PosixFiles::free_space(const std::string& directory) {
  struct statvfs facts {};
  if (::statvfs(directory.c_str(), &facts) != 0) return failure("statvfs", directory);
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

Result<bool> PosixFiles::share_space(const std::string& directory, const std::string& other) {
  struct stat one {};
  struct stat two {};
  if (::stat(directory.c_str(), &one) != 0) return failure("stat", directory);
  if (::stat(other.c_str(), &two) != 0) return failure("stat", other);
  return one.st_dev == two.st_dev;
}

Result<std::unique_ptr<DirectoryLock>> PosixFiles::lock_directory(const std::string& directory) {
  const std::string path = directory + "/" + std::string(kLockFile);
  UniqueFd descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!descriptor) return failure("open", path);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failure("flock", path);
    return Error{Code::kBusy,
                 directory + ": in use by the process with pid " + holder_pid(descriptor.get())};
  }
  // For people, and for the error message of a second daemon. A failed write is ignored: a store on
  // a full disk must still open.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::pwrite(descriptor.get(), pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size())) {
    if (::ftruncate(descriptor.get(), static_cast<off_t>(pid.size())) != 0)
      return failure("truncate", path);
  }
  return std::unique_ptr<DirectoryLock>(std::make_unique<PosixLock>(std::move(descriptor)));
}

}  // namespace pawl::store
