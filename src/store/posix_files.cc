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

// Enough for what the store opens at once beside the files that it keeps open: a checkpoint reads
// one file and writes another, a backup as well, and the loop may make a segment meanwhile.
constexpr std::size_t kReservedDescriptors = 8;

Code code_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
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

std::string holder_pid(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(descriptor, text.data(), text.size() - 1, 0);
  if (n <= 0) return "unknown";
  std::string pid(text.data(), static_cast<std::size_t>(n));
  while (!pid.empty() && (pid.back() == '\n' || pid.back() == ' ')) pid.pop_back();
  return pid;
}

}  // namespace

// --- Descriptors ---------------------------------------------------------------------------------

PosixFiles::PosixFiles(Direct direct) : direct_(direct) {
  fill_reserve();
}

PosixFiles::~PosixFiles() = default;

void PosixFiles::fill_reserve() {
  const std::lock_guard lock(mutex_);
  while (reserve_.size() < kReservedDescriptors) {
    UniqueFd descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!descriptor) return;  // Later, then.
    reserve_.push_back(std::move(descriptor));
  }
}

bool PosixFiles::give_up_reserved() {
  const std::lock_guard lock(mutex_);
  if (reserve_.empty()) return false;
  reserve_.pop_back();
  return true;
}

// Another thread may take the descriptor that was given up; then the next one is.
UniqueFd PosixFiles::open_file(const std::string& path, int flags, unsigned mode) {
  for (;;) {
    UniqueFd descriptor(::open(path.c_str(), flags | O_CLOEXEC, mode));
    const int error_number = errno;
    const bool none_left = !descriptor && (error_number == EMFILE || error_number == ENFILE);
    if (!none_left) return descriptor;
    if (!give_up_reserved()) {
      errno = error_number;
      return descriptor;
    }
  }
}

// --- Files ---------------------------------------------------------------------------------------

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
  UniqueFd descriptor = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!descriptor) return failure("opendir", directory);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor.get()), &::closedir);
  if (!stream) return failure("opendir", directory);
  (void)descriptor.release();  // The stream owns it.
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
  UniqueFd descriptor = open_file(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (!descriptor) return failure("create", path);
  return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path));
}

Result<std::unique_ptr<File>> PosixFiles::open_read(const std::string& path) {
  UniqueFd descriptor = open_file(path, O_RDONLY);
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
    UniqueFd descriptor = open_file(path, O_RDWR | O_DIRECT | O_DSYNC);
    if (descriptor) {
      return std::unique_ptr<File>(
          std::make_unique<DurableFile>(std::move(descriptor), path, true, on_fallback));
    }
    if (errno != EINVAL) return failure("open", path);
  }
  UniqueFd descriptor = open_file(path, O_RDWR);
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
  std::shared_ptr<const UniqueFd> kept;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = locked_directories_.find(directory); found != locked_directories_.end())
      kept = found->second;
  }
  UniqueFd opened;
  if (!kept) {
    opened = open_file(directory, O_RDONLY | O_DIRECTORY);
    if (!opened) return failure("open", directory);
  }
  if (::fsync(kept ? kept->get() : opened.get()) == 0) return {};
  return Error{Code::kUnknown, failure("fsync", directory).detail};
}

Result<std::uint64_t> PosixFiles::free_space(const std::string& directory) {
  fill_reserve();
  struct statvfs facts {};
  if (::statvfs(directory.c_str(), &facts) != 0) return failure("statvfs", directory);
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

Result<std::uint64_t> PosixFiles::free_files(const std::string& directory) {
  struct statvfs facts {};
  if (::statvfs(directory.c_str(), &facts) != 0) return failure("statvfs", directory);
  if (facts.f_files == 0) return UINT64_MAX;  // As on btrfs.
  return static_cast<std::uint64_t>(facts.f_favail);
}

// Walks up by "..", comparing inodes: symbolic links and bind mounts have many paths for one
// directory.
Result<bool> PosixFiles::is_within(const std::string& directory, const std::string& ancestor) {
  struct stat wanted {};
  if (::stat(ancestor.c_str(), &wanted) != 0) return failure("stat", ancestor);
  UniqueFd at = open_file(directory, O_PATH | O_DIRECTORY);
  if (!at) return failure("open", directory);
  struct stat here {};
  if (::fstat(at.get(), &here) != 0) return failure("fstat", directory);
  for (;;) {
    if (here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino) return true;
    UniqueFd above(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!above) return failure("open the parent", directory);
    struct stat parent {};
    if (::fstat(above.get(), &parent) != 0) return failure("fstat the parent", directory);
    if (parent.st_dev == here.st_dev && parent.st_ino == here.st_ino) return false;  // The root.
    at = std::move(above);
    here = parent;
  }
}

Result<bool> PosixFiles::share_space(const std::string& directory, const std::string& other) {
  struct stat one {};
  struct stat two {};
  if (::stat(directory.c_str(), &one) != 0) return failure("stat", directory);
  if (::stat(other.c_str(), &two) != 0) return failure("stat", other);
  return one.st_dev == two.st_dev;
}

class PosixFiles::Lock final : public DirectoryLock {
 public:
  Lock(PosixFiles& files, std::string directory, UniqueFd descriptor)
      : files_(files), directory_(std::move(directory)), descriptor_(std::move(descriptor)) {}
  ~Lock() override {
    const std::lock_guard lock(files_.mutex_);
    files_.locked_directories_.erase(directory_);
  }

 private:
  PosixFiles& files_;
  const std::string directory_;
  UniqueFd descriptor_;  // Closing it ends the flock.
};

Result<std::unique_ptr<DirectoryLock>> PosixFiles::lock_directory(const std::string& directory) {
  const std::string path = directory + "/" + std::string(kLockFile);
  UniqueFd descriptor = open_file(path, O_RDWR | O_CREAT, 0600);
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
  UniqueFd kept = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!kept) return failure("open", directory);
  {
    const std::lock_guard lock(mutex_);
    locked_directories_[directory] = std::make_shared<const UniqueFd>(std::move(kept));
  }
  return std::unique_ptr<DirectoryLock>(
      std::make_unique<Lock>(*this, directory, std::move(descriptor)));
}

}  // namespace pawl::store
