// pawl_bench_load: measures one peer under one workload and prints one line of JSON.
//
//   pawl_bench_load --peer pawl --workload cycle --port 7295 --connections 64
//                   --seconds 0.6 --pid 4711
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "bench/driver.h"
#include "bench/threads.h"

namespace pawl::bench {
namespace {

constexpr const char* kUsage =
    "usage: pawl_bench_load --peer pawl|redis|echo|echolog --workload cycle|handoff|renew --port "
    "N\n"
    "         [--by epoll|threads|client] [--connections N] [--seconds S | --operations N] "
    "[--warmup S] "
    "[--pid N] [--run NAME]\n"
    "  --by    one thread for all connections; one for each; or as many threads as --connections "
    "says, "
    "sharing\n"
    "          one pawl::Client (the last two: pawl's cycle only)\n"
    "  --pid   the server's process, to report the CPU time it used\n"
    "  --run   part of every lock name; default: this process's number\n";

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "pawl_bench_load: %s\n%s", problem.c_str(), kUsage);
  std::exit(64);
}

template <class T>
T choice(const std::string& option, const std::string& word,
         const std::map<std::string, T>& words) {
  const auto found = words.find(word);
  if (found == words.end()) usage("unknown " + option + ": " + word);
  return found->second;
}

double amount(const std::string& option, const char* text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most)) {
    usage("--" + option + " must be a number from " + std::to_string(least) + " to " +
          std::to_string(most));
  }
  return value;
}

Nanos seconds(double value) {
  return Nanos(static_cast<Nanos::rep>(value * 1e9));
}

void set(Plan& plan, const std::string& option, const char* text) {
  if (option == "peer") {
    plan.peer = choice<Peer>(option, text,
                             {{"pawl", Peer::kPawl},
                              {"redis", Peer::kRedis},
                              {"echo", Peer::kEcho},
                              {"echolog", Peer::kEcho}});
  } else if (option == "workload") {
    plan.workload = choice<Workload>(option, text,
                                     {{"cycle", Workload::kCycle},
                                      {"handoff", Workload::kHandoff},
                                      {"renew", Workload::kRenew}});
  } else if (option == "by") {
    plan.by = choice<By>(
        option, text, {{"epoll", By::kEpoll}, {"threads", By::kThreads}, {"client", By::kClient}});
  } else if (option == "port") {
    plan.port = static_cast<std::uint16_t>(amount(option, text, 1, 65535));
  } else if (option == "connections") {
    plan.connections = static_cast<std::size_t>(amount(option, text, 1, 20000));
  } else if (option == "seconds") {
    plan.duration = seconds(amount(option, text, 0.01, 3600));
  } else if (option == "operations") {
    plan.operations_max = static_cast<std::uint64_t>(amount(option, text, 1, 1e12));
    plan.duration = seconds(3600);
  } else if (option == "warmup") {
    plan.warmup = seconds(amount(option, text, 0, 60));
  } else if (option == "pid") {
    plan.server = static_cast<pid_t>(amount(option, text, 1, 1e9));
  } else if (option == "run") {
    plan.run = text;
    if (plan.run.empty() || plan.run.size() > 10) usage("--run must have 1 to 10 characters");
  }
}

Plan parse(int argc, char** argv) {
  static const option kOptions[] = {
      {"peer", required_argument, nullptr, 1},
      {"workload", required_argument, nullptr, 1},
      {"by", required_argument, nullptr, 1},
      {"port", required_argument, nullptr, 1},
      {"connections", required_argument, nullptr, 1},
      {"seconds", required_argument, nullptr, 1},
      {"operations", required_argument, nullptr, 1},
      {"warmup", required_argument, nullptr, 1},
      {"pid", required_argument, nullptr, 1},
      {"run", required_argument, nullptr, 1},
      {"help", no_argument, nullptr, 2},
      {nullptr, 0, nullptr, 0},
  };
  Plan plan;
  plan.run = std::to_string(::getpid());
  int index = 0;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions, &index)) != -1;) {
    if (found == 2) {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (found != 1) usage("unknown option");
    set(plan, kOptions[index].name, optarg);
  }
  if (optind != argc) usage(std::string("unexpected: ") + argv[optind]);
  if (plan.port == 0) usage("--port is missing");
  if (plan.peer == Peer::kEcho && plan.workload == Workload::kHandoff)
    usage("an echo server hands nothing on");
  const bool cycle =
      plan.peer == Peer::kPawl && plan.workload == Workload::kCycle && plan.operations_max == 0;
  if (plan.by != By::kEpoll && !cycle)
    usage("--by threads and client know pawl's cycle only, by time");
  return plan;
}

double in_seconds(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    out += plain ? c : '.';
  }
  return out + "\"";
}

void print(const Measured& got) {
  const double elapsed = in_seconds(got.elapsed);
  const auto operations = static_cast<double>(got.operations);
  const auto micros = [](Nanos time) { return in_seconds(time) * 1e6; };
  const double foreign = in_seconds(got.cpu.machine - got.cpu.self - got.cpu.server) / elapsed;
  std::printf(
      "{\"operations\": %llu, \"elapsed_s\": %.4f, \"rate\": %.1f, \"p50_us\": %.1f, \"p99_us\": "
      "%.1f, "
      "\"errors\": %llu, \"first_error\": %s, \"server_cores\": %.3f, \"server_us_per_op\": %.2f, "
      "\"client_cores\": %.3f, \"foreign_cores\": %.3f, \"stolen_cores\": %.3f}\n",
      static_cast<unsigned long long>(got.operations), elapsed, operations / elapsed,
      micros(got.latency.quantile(0.5)), micros(got.latency.quantile(0.99)),
      static_cast<unsigned long long>(got.errors), quoted(got.first_error).c_str(),
      in_seconds(got.cpu.server) / elapsed,
      got.operations == 0 ? 0.0 : micros(got.cpu.server) / operations,
      in_seconds(got.cpu.self) / elapsed, foreign, in_seconds(got.cpu.stolen) / elapsed);
}

}  // namespace
}  // namespace pawl::bench

int main(int argc, char** argv) {
  const pawl::bench::Plan plan = pawl::bench::parse(argc, argv);
  try {
    pawl::bench::print(plan.by == pawl::bench::By::kEpoll ? pawl::bench::drive(plan)
                                                          : pawl::bench::drive_threads(plan));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl_bench_load: %s\n", error.what());
    return 69;
  }
  return 0;
}
