// lossy_fs: a file system (FUSE) that can lose its power under a real pawld. What lies behind it is
// the simulated disk that the journal's own tests use: what was not synced is lost, kept, torn and
// reordered as a seed decides.
//
//   lossy_fs MOUNTPOINT       prints "ok" once mounted; then takes commands, one per line, and
//                             answers each with "ok …":
//     cut                     the power is gone: every call fails from now on
//     cut-at N                the same in the middle of the Nth call from now that changes or syncs
//                             something
//     on SEED                 the power is back, and what was not synced is decided. Its users must
//                             have ended
//     operations              how many calls have changed or synced something
//     direct yes|no|open-only whether O_DIRECT is taken; open-only: the open succeeds and the write
//                             is refused, as some do
//   The end of the input unmounts it.
//
// One flat directory; what pawld asks of a file system, and no more.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "base/random.h"
#include "store/testlib/simulated_disk.h"

namespace pawl::fire {
namespace {

enum class Direct { kYes, kNo, kOpenOnly };

// The kernel's calls and the commands come on two threads.
struct World {
  std::mutex mutex;
  store::SimulatedDisk disk;
  Direct direct = Direct::kYes;
};

World& world() {
  static World made;
  return made;
}

// The root has an empty name, as every path begins with a slash.
constexpr const char* kRoot = "/";
bool is_root(const char* path) {
  return std::strcmp(path, "/") == 0;
}

int error_of(const Error& error) {
  return error.code == Code::kUnavailable ? -ENOSPC : -EIO;
}
template <class T>
int answer(const Result<T>& result) {
  return result ? 0 : error_of(result.error());
}

struct Handle {
  std::unique_ptr<store::File> file;
  bool durable = false;
};
Handle& handle_of(const fuse_file_info* info) {
  return *reinterpret_cast<Handle*>(info->fh);
}

int keep(Result<std::unique_ptr<store::File>> file, bool durable, fuse_file_info* info) {
  if (!file) return error_of(file.error());
  info->fh = reinterpret_cast<std::uint64_t>(new Handle{std::move(*file), durable});
  return 0;
}

// 0, -ENOENT, or -EIO.
int find(const char* path) {
  const auto there = world().disk.exists(path);
  if (!there) return error_of(there.error());
  return *there ? 0 : -ENOENT;
}

// --- Names ---------------------------------------------------------------------------------------

void* start(fuse_conn_info*, fuse_config* config) {
  config->hard_remove = 1;
  // After a power cut the kernel must not remember what was there before.
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  return nullptr;
}

Result<std::uint64_t> size_of(const char* path, const fuse_file_info* info) {
  if (info != nullptr && info->fh != 0) return handle_of(info).file->size();
  auto file = world().disk.open_read(path);
  if (!file) return file.error();
  return (*file)->size();
}

int get_attributes(const char* path, struct stat* facts, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  *facts = {};
  if (path != nullptr && is_root(path)) {
    facts->st_mode = S_IFDIR | 0700;
    facts->st_nlink = 2;
    return 0;
  }
  if (info == nullptr || info->fh == 0) {
    if (const int found = find(path); found != 0) return found;
  }
  const auto size = size_of(path, info);
  if (!size) return error_of(size.error());
  facts->st_mode = S_IFREG | 0600;
  facts->st_nlink = 1;
  facts->st_size = static_cast<off_t>(*size);
  return 0;
}

int read_directory(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                   fuse_readdir_flags) {
  const std::lock_guard lock(world().mutex);
  const auto names = world().disk.list(kRoot);
  if (!names) return error_of(names.error());
  for (const char* name : {".", ".."}) fill(buffer, name, nullptr, 0, fuse_fill_dir_flags{});
  for (const std::string& name : *names)
    fill(buffer, name.c_str(), nullptr, 0, fuse_fill_dir_flags{});
  return 0;
}

int rename_file(const char* from, const char* to, unsigned flags) {
  const std::lock_guard lock(world().mutex);
  if (flags != 0) return -EINVAL;
  if (const int found = find(from); found != 0) return found;
  return answer(world().disk.rename(from, to));
}

int remove_file(const char* path) {
  const std::lock_guard lock(world().mutex);
  if (const int found = find(path); found != 0) return found;
  return answer(world().disk.remove(path));
}

int sync_directory(const char*, int, fuse_file_info*) {
  const std::lock_guard lock(world().mutex);
  return answer(world().disk.sync_directory(kRoot));
}

// --- Files ---------------------------------------------------------------------------------------

int create_file(const char* path, mode_t, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  return keep(world().disk.create(path), false, info);
}

int open_file(const char* path, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  if (const int found = find(path); found != 0) return found;
  if ((info->flags & O_DIRECT) != 0 && world().direct == Direct::kNo) return -EINVAL;
  if ((info->flags & O_ACCMODE) == O_RDONLY) return keep(world().disk.open_read(path), false, info);
  if ((info->flags & O_DSYNC) != 0) return keep(world().disk.open_durable(path), true, info);
  return keep(world().disk.open_buffered(path), false, info);
}

int close_file(const char*, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  delete &handle_of(info);
  return 0;
}

int read_file(const char*, char* into, size_t size, off_t offset, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  const auto count = handle_of(info).file->read(static_cast<std::uint64_t>(offset), {into, size});
  return count ? static_cast<int>(*count) : error_of(count.error());
}

// The simulated disk insists on what O_DIRECT insists on, and the kernel's buffer here is anywhere.
Result<void> write_aligned(store::File& file, std::uint64_t offset, std::string_view bytes) {
  const std::unique_ptr<void, void (*)(void*)> memory(
      std::aligned_alloc(store::kBlock, bytes.size()), &std::free);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  return file.write(offset, {static_cast<const char*>(memory.get()), bytes.size()});
}

int write_file(const char*, const char* bytes, size_t size, off_t offset, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  if ((info->flags & O_DIRECT) != 0 && world().direct == Direct::kOpenOnly) return -EINVAL;
  const Handle& handle = handle_of(info);
  const auto at = static_cast<std::uint64_t>(offset);
  const auto written = handle.durable ? write_aligned(*handle.file, at, {bytes, size})
                                      : handle.file->write(at, {bytes, size});
  return written ? static_cast<int>(size) : error_of(written.error());
}

int sync_file(const char*, int, fuse_file_info* info) {
  const std::lock_guard lock(world().mutex);
  return answer(handle_of(info).file->sync());
}

// To nothing: a new file under the name, so that a cut may bring the old bytes back.
int truncate_file(const char* path, off_t size, fuse_file_info*) {
  const std::lock_guard lock(world().mutex);
  if (const int found = find(path); found != 0) return found;
  if (size == 0) return answer(world().disk.create(path));
  world().disk.truncate(path, static_cast<std::uint64_t>(size));
  return 0;
}

int get_space(const char*, struct statvfs* facts) {
  const std::lock_guard lock(world().mutex);
  const auto space = world().disk.free_space(kRoot);
  if (!space) return error_of(space.error());
  *facts = {};
  facts->f_bsize = facts->f_frsize = store::kBlock;
  facts->f_bavail = facts->f_bfree = facts->f_blocks = *space / store::kBlock;
  return 0;
}

fuse_operations operations() {
  fuse_operations all{};
  all.init = start;
  all.getattr = get_attributes;
  all.readdir = read_directory;
  all.rename = rename_file;
  all.unlink = remove_file;
  all.fsyncdir = sync_directory;
  all.create = create_file;
  all.open = open_file;
  all.release = close_file;
  all.read = read_file;
  all.write = write_file;
  all.fsync = sync_file;
  all.truncate = truncate_file;
  all.statfs = get_space;
  return all;
}

// --- Commands ------------------------------------------------------------------------------------

std::string obey(const std::string& line) {
  std::istringstream words(line);
  std::string command, how;
  std::uint64_t number = 0;
  words >> command;
  const std::lock_guard lock(world().mutex);
  if (command == "cut") {
    world().disk.cut_power();
  } else if (command == "cut-at" && words >> number) {
    world().disk.cut_power_at(number);
  } else if (command == "on" && words >> number) {
    SeededRandom random(number);
    world().disk.restart(random);
  } else if (command == "operations") {
    return "ok " + std::to_string(world().disk.operations());
  } else if (command == "direct" && words >> how) {
    world().direct = how == "yes" ? Direct::kYes : how == "no" ? Direct::kNo : Direct::kOpenOnly;
  } else {
    return "no such command: " + line;
  }
  return "ok";
}

int serve(const char* program, const char* mountpoint) {
  const fuse_operations all = operations();
  char* arguments[] = {const_cast<char*>(program), nullptr};
  fuse_args args{1, arguments, 0};
  fuse* mounted = fuse_new(&args, &all, sizeof all, nullptr);
  if (mounted == nullptr || fuse_mount(mounted, mountpoint) != 0) {
    std::cerr << "lossy_fs: cannot mount on " << mountpoint
              << " (needs /dev/fuse and the right to mount)\n";
    return 1;
  }
  std::cout << "ok" << std::endl;
  std::thread kernel([mounted] { fuse_loop(mounted); });
  for (std::string line; std::getline(std::cin, line);) std::cout << obey(line) << std::endl;
  fuse_exit(mounted);
  fuse_unmount(mounted);  // Wakes the thread.
  kernel.join();
  fuse_destroy(mounted);
  return 0;
}

}  // namespace
}  // namespace pawl::fire

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: lossy_fs MOUNTPOINT\n";
    return 64;
  }
  return pawl::fire::serve(argv[0], argv[1]);
}
