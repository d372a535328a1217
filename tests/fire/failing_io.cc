// failing_io.so: a disk that goes wrong under a real pawld. Loaded before libc (LD_PRELOAD), it
// counts the calls that write or sync something below one directory, and lets a chosen one go
// wrong. The tests in this folder set it up through the environment:
//
//   PAWL_FIRE_UNDER=DIR     whose files are meant; absolute, without symbolic links
//   PAWL_FIRE_AT=N          the Nth such call goes wrong (1 is the first); without it none does
//   PAWL_FIRE_HOW=…         how: EIO or ENOSPC (nothing happened), EIO-done (it happened, and an
//                           error is returned all the same), EIO-torn (of a write, the first half
//                           happened), or short (from the Nth on, every write takes half of its
//                           bytes, which POSIX allows)
//   PAWL_FIRE_REPORT=FILE   the call that went wrong is written there: "pwrite segment-00000001.log
//                           EIO"
//   PAWL_FIRE_GATE=FILE     as long as that file exists, whatever makes bytes durable hangs, and
//                           FILE.reached says that something does; with a number in it, it only
//                           takes that many milliseconds longer
//   PAWL_FIRE_READ_GATE     the same for reads
//
// What makes bytes durable: fsync, fdatasync, and a write to a file that was opened with O_DSYNC.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

namespace {

enum class How { kNothing, kDone, kTorn, kShort };

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Read once, before the first call that could go wrong.
struct Plan {
  const std::string under = variable("PAWL_FIRE_UNDER");
  const std::string report = variable("PAWL_FIRE_REPORT");
  const std::string gate = variable("PAWL_FIRE_GATE");
  const std::string read_gate = variable("PAWL_FIRE_READ_GATE");
  const std::string how_text = variable("PAWL_FIRE_HOW");
  const long at = std::atol(variable("PAWL_FIRE_AT").c_str());
  const int error_number = how_text == "ENOSPC" ? ENOSPC : EIO;
  const How how = how_text == "EIO-done"   ? How::kDone
                  : how_text == "EIO-torn" ? How::kTorn
                  : how_text == "short"    ? How::kShort
                                           : How::kNothing;
};

const Plan& plan() {
  static const Plan made;
  return made;
}

std::atomic<long> calls = 0;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// The file's name below the directory; empty when it is elsewhere.
std::string_view name_below(std::string_view path) {
  const std::string& under = plan().under;
  if (under.empty() || !path.starts_with(under)) return {};
  const std::string_view rest = path.substr(under.size());
  if (rest.empty()) return ".";
  return rest.front() == '/' ? rest.substr(1) : std::string_view{};
}

// Of an open file. Stays valid until this thread asks again.
std::string_view name_of(int descriptor) {
  if (plan().under.empty()) return {};
  static thread_local std::array<char, 4096> path;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size <= 0 ? std::string_view{} : name_below({path.data(), static_cast<std::size_t>(size)});
}

void pause_ms(long milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  ::nanosleep(&time, nullptr);
}

void wait_at(const std::string& gate) {
  const int file = gate.empty() ? -1 : ::open(gate.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 16> text{};
  const ssize_t size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (size > 0) return pause_ms(std::atol(text.data()));
  ::close(::open((gate + ".reached").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  while (::access(gate.c_str(), F_OK) == 0) pause_ms(1);
}

bool is_durable(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_DSYNC) != 0;
}

void report(std::string_view call, std::string_view name) {
  if (plan().report.empty()) return;
  const int file = ::open(plan().report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string line = std::string(call) + " " + std::string(name) + " " +
                           (plan().how_text.empty() ? "EIO" : plan().how_text) + "\n";
  (void)!::write(file, line.data(), line.size());
  ::close(file);
}

// Counts a call, and says whether it is the one.
bool strikes(std::string_view call, std::string_view name) {
  const long number = ++calls;
  if (plan().at <= 0 || number < plan().at) return false;
  if (number == plan().at) report(call, name);
  return number == plan().at || plan().how == How::kShort;
}

template <class Do>
int fail_or(std::string_view call, std::string_view name, const Do& really) {
  if (name.empty() || !strikes(call, name) || plan().how == How::kShort) return really();
  if (plan().how == How::kDone) (void)really();
  errno = plan().error_number;
  return -1;
}

template <class Write>
ssize_t write_or_fail(std::string_view call, int descriptor, std::size_t size, const Write& write) {
  const std::string_view name = name_of(descriptor);
  if (name.empty()) return write(size);
  if (is_durable(descriptor)) wait_at(plan().gate);
  if (!strikes(call, name)) return write(size);
  switch (plan().how) {
    case How::kShort:
      return write(size > 1 ? size / 2 : size);
    case How::kDone:
      (void)write(size);
      break;
    case How::kTorn:
      (void)write(size / 2);
      break;
    case How::kNothing:
      break;
  }
  errno = plan().error_number;
  return -1;
}

int sync_or_fail(const char* call, int descriptor) {
  const std::string_view name = name_of(descriptor);
  if (!name.empty()) wait_at(plan().gate);
  return fail_or(call, name, [&] { return real<int (*)(int)>(call)(descriptor); });
}

}  // namespace

// What pawld calls. Both spellings of pwrite, as either may be what its compiler chose.
extern "C" {

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return write_or_fail("pwrite", descriptor, size,
                       [&](std::size_t count) { return next(descriptor, bytes, count, offset); });
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return write_or_fail("pwrite", descriptor, size,
                       [&](std::size_t count) { return next(descriptor, bytes, count, offset); });
}

ssize_t pread(int descriptor, void* into, size_t size, off_t offset) {
  static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  if (!plan().read_gate.empty() && !name_of(descriptor).empty()) wait_at(plan().read_gate);
  return next(descriptor, into, size, offset);
}

int fsync(int descriptor) {
  return sync_or_fail("fsync", descriptor);
}

int fdatasync(int descriptor) {
  return sync_or_fail("fdatasync", descriptor);
}

int rename(const char* from, const char* to) noexcept {
  return fail_or("rename", name_below(to),
                 [&] { return real<int (*)(const char*, const char*)>("rename")(from, to); });
}

}  // extern "C"
