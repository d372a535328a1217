// Runs every planted bug (base/mutants.h) through the simulator until some property catches it, and
// prints the table.
//
//   pawl_mutants [--seeds N] [--jobs N] [NAME…]
//
// Exit 0: all caught; 1: one survived, or the healthy build did not pass.
//
// Each bug runs in a process of its own, because an assertion that ends it is a catch as well.
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/mutants.h"
#include "sim/simulation.h"

namespace pawl::sim {
namespace {

constexpr unsigned kStuckSeconds = 240;  // A bug that hangs is caught, but not by a property.

struct Case {
  MutantEntry entry;
  pid_t process = 0;
  int pipe = -1;
  std::string output;
};

// Bugs of several pawld on one store need several.
int nodes_for(Mutant mutant) {
  return mutant >= Mutant::role_window_ignored && mutant <= Mutant::unknown_taken_for_failure ? 3
                                                                                              : 0;
}

// In the child: says each seed before it runs it, and what caught the bug.
[[noreturn]] void run_child(Mutant mutant, std::uint64_t seeds, int pipe) {
  ::alarm(kStuckSeconds);
  ::dup2(pipe, STDERR_FILENO);  // An assertion prints where.
  chosen_mutant = mutant;
  const auto say = [pipe](const std::string& line) {
    (void)!::write(pipe, line.data(), line.size());
  };
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    say(fmt::format("seed {}\n", seed));
    std::vector<int> nodes{nodes_for(mutant)};
    if (mutant == Mutant::none) nodes.push_back(3);
    for (const int count : nodes) {
      Plan plan;
      plan.seed = seed;
      plan.nodes = count;
      const Verdict verdict = simulate(plan);
      if (verdict.faults.empty()) continue;
      say(fmt::format("caught {}\n", verdict.faults.front()));
      ::_exit(0);
    }
  }
  say("survived\n");
  ::_exit(0);
}

void start(Case& one, std::uint64_t seeds) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  one.process = ::fork();
  if (one.process == 0) run_child(one.entry.mutant, seeds, ends[1]);
  ::close(ends[1]);
  one.pipe = ends[0];
}

std::string last_line(std::string_view text, std::string_view beginning) {
  std::string found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(beginning)) found = line.substr(beginning.size());
    at = end + 1;
  }
  return found;
}

// Prints its line of the table; false when nothing caught it.
bool finish(Case& one, bool healthy) {
  ::close(one.pipe);
  int status = 0;
  ::waitpid(one.process, &status, 0);
  const std::string seed = last_line(one.output, "seed ");
  std::string caught = last_line(one.output, "caught ");
  if (WIFSIGNALED(status)) {
    const std::string where = last_line(one.output, "pawl: assertion failed: ");
    caught = WTERMSIG(status) == SIGALRM ? "--: it hangs" : "!!: assertion " + where;
  }
  const std::string survived = healthy ? "-" : "SURVIVED";
  if (caught.empty()) caught = fmt::format("{:<2}: {}", "", one.entry.lesson);
  const bool was_caught = caught.front() != ' ';
  fmt::print("{:<30} {:<8} {:>5}  {}\n", one.entry.name,
             was_caught ? caught.substr(0, 2) : survived, seed,
             caught.substr(std::min<std::size_t>(caught.size(), 4)).substr(0, 100));
  std::fflush(stdout);
  return was_caught;
}

// Reads what the running ones say, until one of them has ended; returns its place.
std::size_t wait_for_one(std::vector<Case>& running) {
  for (;;) {
    std::vector<pollfd> fds;
    for (const Case& one : running) fds.push_back({one.pipe, POLLIN, 0});
    ::poll(fds.data(), fds.size(), -1);
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (fds[i].revents == 0) continue;
      char bytes[4096];
      const ssize_t got = ::read(running[i].pipe, bytes, sizeof bytes);
      if (got <= 0) return i;
      running[i].output.append(bytes, static_cast<std::size_t>(got));
    }
  }
}

struct Options {
  std::uint64_t seeds = 4000;
  std::uint64_t healthy_seeds = 100;
  std::size_t jobs = 2;
  std::vector<MutantEntry> mutants;
};

int run(const Options& options) {
  fmt::print("{:<30} {:<8} {:>5}  {}\n", "planted bug", "caught", "seeds", "by");
  std::vector<Case> waiting, running;
  for (const MutantEntry& entry : options.mutants) waiting.push_back({entry, 0, -1, {}});
  std::reverse(waiting.begin(), waiting.end());
  std::size_t survivors = 0;
  while (!waiting.empty() || !running.empty()) {
    while (!waiting.empty() && running.size() < options.jobs) {
      running.push_back(std::move(waiting.back()));
      waiting.pop_back();
      const bool none = running.back().entry.mutant == Mutant::none;
      start(running.back(), none ? options.healthy_seeds : options.seeds);
    }
    const std::size_t ended = wait_for_one(running);
    const bool healthy = running[ended].entry.mutant == Mutant::none;
    if (finish(running[ended], healthy) == healthy) ++survivors;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended));
  }
  fmt::print("{} planted bugs, {}\n", options.mutants.size() - 1,
             survivors == 0 ? "all caught" : fmt::format("{} NOT as they should be", survivors));
  return survivors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::sim

int main(int argc, char** argv) {
  using namespace pawl;
  sim::Options options;
  // Nothing planted: whatever is caught after that is the bug's doing.
  options.mutants.push_back({Mutant::none, "(none)", "the healthy build passes"});
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if ((word == "--seeds" || word == "--jobs") && i + 1 < argc) {
      const std::uint64_t number = std::strtoull(argv[++i], nullptr, 10);
      (word == "--seeds" ? options.seeds : options.jobs) = number;
      continue;
    }
    const auto found = std::find_if(kMutants.begin(), kMutants.end(),
                                    [&](const auto& m) { return m.name == word; });
    if (found == kMutants.end()) {
      fmt::print(stderr, "usage: pawl_mutants [--seeds N] [--jobs N] [NAME…]\n");
      return 64;
    }
    options.mutants.push_back(*found);
  }
  if (options.mutants.size() == 1)
    options.mutants.insert(options.mutants.end(), kMutants.begin(), kMutants.end());
  return sim::run(options);
}
