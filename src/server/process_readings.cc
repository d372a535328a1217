// What the kernel knows about this process. Read where a scrape is answered, never on the engine's
// thread.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "server/metrics.h"

namespace pawl::server {
namespace {

// Fields of /proc/self/stat behind the name, which may hold anything: the first is number 3, the
// state.
double started(double ticks_per_second) {
  std::ifstream stat("/proc/self/stat");
  std::string line;
  std::getline(stat, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks_after_boot = 0;
  fields >> ticks_after_boot;
  std::ifstream boot("/proc/stat");
  for (std::string word; boot >> word;) {
    double at = 0;
    if (word == "btime" && boot >> at) return at + ticks_after_boot / ticks_per_second;
  }
  return 0;
}

std::uint64_t size_of(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code gone;  // The store's helper may delete a file while we look.
  for (std::filesystem::directory_iterator file(directory, gone), end; !gone && file != end;
       file.increment(gone)) {
    std::error_code no_size;
    const auto size = file->is_regular_file(no_size) ? file->file_size(no_size) : 0;
    if (!no_size) bytes += size;
  }
  return bytes;
}

std::uint64_t count_of(const std::string& directory) {
  std::uint64_t count = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator file(directory, gone), end; !gone && file != end;
       file.increment(gone))
    ++count;
  return count;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

ProcessReadings read_process(const std::string& data_directory) {
  ProcessReadings readings;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0)
    readings.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  readings.start_seconds = started(static_cast<double>(::sysconf(_SC_CLK_TCK)));
  std::uint64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  readings.virtual_bytes = total * page;
  readings.resident_bytes = resident * page;
  readings.open_descriptors = count_of("/proc/self/fd");
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) readings.descriptors_max = limit.rlim_cur;
  readings.store_bytes = size_of(data_directory);
  std::error_code unknown;
  const auto volume = std::filesystem::space(data_directory, unknown);
  if (!unknown) readings.free_bytes = volume.available;
  return readings;
}

}  // namespace pawl::server
