// pawl_bench_hold: what it costs to hold many leases in one process. Takes them through one
// pawl::Client, then only watches for a while as they are renewed, and prints one line of JSON.
//
//   pawl_bench_hold --port 7295 --pid 4711 --leases 100000 --ttl 15 --seconds 15
#include <getopt.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "pawl/pawl.h"

namespace pawl::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUsage =
    "usage: pawl_bench_hold --port N [--pid N] [--leases N] [--ttl S] [--seconds S]\n"
    "  --pid   the server's process, to report the CPU time it used\n";

struct Plan {
  int port = 0;
  pid_t server = 0;
  std::size_t leases = 100'000;
  std::chrono::seconds ttl = 15s;
  std::chrono::seconds watch = 15s;
};

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "pawl_bench_hold: %s\n%s", problem.c_str(), kUsage);
  std::exit(64);
}

long number(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1)
    usage(std::string("not a positive number: ") + text);
  return value;
}

Plan parse(int argc, char** argv) {
  static const option kOptions[] = {
      {"port", required_argument, nullptr, 'p'},    {"pid", required_argument, nullptr, 'i'},
      {"leases", required_argument, nullptr, 'n'},  {"ttl", required_argument, nullptr, 't'},
      {"seconds", required_argument, nullptr, 's'}, {nullptr, 0, nullptr, 0},
  };
  Plan plan;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (found == '?') usage("unknown option");
    const long value = number(optarg);
    if (found == 'p') plan.port = static_cast<int>(value);
    if (found == 'i') plan.server = static_cast<pid_t>(value);
    if (found == 'n') plan.leases = static_cast<std::size_t>(value);
    if (found == 't') plan.ttl = std::chrono::seconds(value);
    if (found == 's') plan.watch = std::chrono::seconds(value);
  }
  if (plan.port == 0) usage("--port is missing");
  return plan;
}

// What the client counts.
struct Counters {
  std::atomic<std::uint64_t> renewals = 0, commands = 0, lost = 0;
  void add(std::string_view name, double value) {
    const auto more = static_cast<std::uint64_t>(value);
    if (name == "renewals") renewals += more;
    if (name == "renewal_commands") commands += more;
    if (name == "leases_lost") lost += more;
  }
};

// All of them, a few hundred asked for at a time.
std::vector<Lease> take(Client& client, const Plan& plan, std::string& wrong) {
  constexpr std::ptrdiff_t kAtOnce = 512;
  std::counting_semaphore<kAtOnce> room(kAtOnce);
  std::vector<Lease>
      leases;  // Only the callback thread touches these two before the last has come.
  leases.reserve(plan.leases);
  for (std::size_t i = 0; i < plan.leases; ++i) {
    room.acquire();
    client.acquire_async(
        {"bench/hold/" + std::to_string(i)}, {.ttl = plan.ttl}, [&](Result<Lease> lease) {
          lease ? leases.push_back(*std::move(lease)) : void(wrong = lease.error().detail);
          room.release();
        });
  }
  for (std::ptrdiff_t i = 0; i < kAtOnce; ++i) room.acquire();
  return leases;
}

template <class Counts>
std::size_t count_entries(const char* directory, Counts counts) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (counts(entry)) ++found;
  }
  return found;
}

std::size_t threads() {
  return count_entries("/proc/self/task", [](const auto&) { return true; });
}

std::size_t sockets() {
  return count_entries("/proc/self/fd", [](const auto& entry) {
    std::error_code gone;  // The directory's own descriptor.
    return std::filesystem::read_symlink(entry, gone).string().starts_with("socket:");
  });
}

double in_seconds(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

int run(const Plan& plan) {
  Counters counters;
  auto client = std::make_unique<Client>(
      "127.0.0.1:" + std::to_string(plan.port),
      ClientOptions{.call_timeout = 60s, .metric = [&](std::string_view name, double value) {
                      counters.add(name, value);
                    }});
  std::string wrong;
  const Nanos began = monotonic_now();
  std::vector<Lease> leases = take(*client, plan, wrong);
  const Nanos taken = monotonic_now() - began;
  if (!wrong.empty()) {
    std::fprintf(stderr, "pawl_bench_hold: %s\n", wrong.c_str());
    return 69;
  }

  const std::uint64_t renewals = counters.renewals, commands = counters.commands;
  const CpuTimes before = cpu_times(plan.server);
  const Nanos watched = monotonic_now();
  std::this_thread::sleep_for(plan.watch);
  const CpuTimes used = cpu_times(plan.server) - before;
  const double elapsed = in_seconds(monotonic_now() - watched);
  std::size_t held = 0;
  for (const Lease& lease : leases) held += lease.state() == LeaseState::kHeld ? 1 : 0;
  std::printf(
      "{\"leases\": %zu, \"ttl_s\": %ld, \"taken_s\": %.2f, \"elapsed_s\": %.3f, \"held\": %zu, "
      "\"lost\": "
      "%llu, "
      "\"threads\": %zu, \"connections\": %zu, \"renewals\": %llu, \"commands\": %llu, "
      "\"client_cpu_s\": "
      "%.3f, "
      "\"server_cpu_s\": %.3f, \"foreign_cores\": %.3f, \"stolen_cores\": %.3f}\n",
      leases.size(), static_cast<long>(plan.ttl.count()), in_seconds(taken), elapsed, held,
      static_cast<unsigned long long>(counters.lost.load()), threads() - 1,
      sockets(),  // Without this thread.
      static_cast<unsigned long long>(counters.renewals - renewals),
      static_cast<unsigned long long>(counters.commands - commands), in_seconds(used.self),
      in_seconds(used.server), in_seconds(used.machine - used.self - used.server) / elapsed,
      in_seconds(used.stolen) / elapsed);
  // First the client, which gives everything back at once and for a second at most; a lease alone
  // would wait for it.
  client.reset();
  return 0;
}

}  // namespace
}  // namespace pawl::bench

int main(int argc, char** argv) {
  return pawl::bench::run(pawl::bench::parse(argc, argv));
}
