#include "auth/users_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/unique_fd.h"

namespace pawl::auth {
namespace {

constexpr mode_t kPrivate = 0600;

Error failure(const std::string& path, std::string_view what) {
  return {Code::kInvalid,
          fmt::format("{}: {}: {}", path, what, std::generic_category().message(errno))};
}

Result<struct stat> check_mode(int fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return failure(path, "cannot be examined");
  if (!S_ISREG(facts.st_mode)) return Error{Code::kInvalid, path + ": is not a file"};
  if ((facts.st_mode & S_IRWXO) != 0) {
    return Error{Code::kInvalid,
                 fmt::format("{}: is accessible to other users (mode {:04o}); run: chmod 600 {}",
                             path, facts.st_mode & 07777, path)};
  }
  return facts;
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(path, "cannot be read");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) {
      return Error{Code::kInvalid, fmt::format("{}: longer than {} bytes", path, kFileBytesMax)};
    }
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

void sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const UniqueFd directory(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) (void)::fsync(directory.get());
}

// Opens the file and locks it against other changes. The file may be replaced while we wait for its
// lock; then the new one is opened and locked.
Result<UniqueFd> open_locked(const std::string& path, WhenMissing when_missing) {
  for (;;) {
    const int create = when_missing == WhenMissing::kCreate ? O_CREAT : 0;
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | create, kPrivate));
    if (!file) return failure(path, "cannot be opened");
    int locked = 0;
    do {
      locked = ::flock(file.get(), LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    if (locked != 0) return failure(path, "cannot be locked");
    struct stat ours {
    }, current{};
    if (::fstat(file.get(), &ours) != 0) return failure(path, "cannot be examined");
    const bool there = ::stat(path.c_str(), &current) == 0;
    if (there && ours.st_dev == current.st_dev && ours.st_ino == current.st_ino) return file;
  }
}

Result<void> replace(const std::string& path, std::string_view text, const struct stat& like) {
  const std::string partial = path + ".new";  // No other process uses it while we hold the lock.
  ::unlink(partial.c_str());
  const UniqueFd file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate));
  if (!file) return failure(partial, "cannot be created");
  const auto give_up = [&](std::string_view what) {
    const Error error = failure(partial, what);
    ::unlink(partial.c_str());
    return error;
  };
  // The owner first, because changing it may clear mode bits. Setting the same owner as before is
  // always allowed.
  if (::fchown(file.get(), like.st_uid, like.st_gid) != 0)
    return give_up("cannot be given the owner of the old file");
  if (::fchmod(file.get(), like.st_mode & 0777) != 0)
    return give_up("cannot be given the mode of the old file");
  if (!write_all(file.get(), text) || ::fsync(file.get()) != 0) return give_up("cannot be written");
  if (::rename(partial.c_str(), path.c_str()) != 0) return give_up("cannot replace the old file");
  sync_directory_of(path);
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // A FIFO must not block.
  if (!file) return failure(path, "cannot be opened");
  if (const auto mode = check_mode(file.get(), path); !mode) return mode.error();
  return read_all(file.get(), path);
}

Result<std::vector<User>> load_users(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return parse_users(*text, path);
}

Result<void> change_file(const std::string& path, WhenMissing when_missing,
                         const std::function<Result<std::string>(std::string_view)>& change) {
  // A symbolic link stays; the file that it points to is replaced.
  std::error_code unknown;
  const std::string target = std::filesystem::weakly_canonical(path, unknown).string();
  const std::string& real = unknown ? path : target;
  const auto file = open_locked(real, when_missing);
  if (!file) return file.error();
  const auto facts = check_mode(file->get(), real);
  if (!facts) return facts.error();
  const auto old = read_all(file->get(), real);
  if (!old) return old.error();
  const auto changed = change(*old);
  if (!changed) return changed.error();
  return replace(real, *changed, *facts);
}

}  // namespace pawl::auth
