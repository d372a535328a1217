// Many writers with old and new tokens append lines to one object.
//
//   s3_race guarded|checked WHERE KEY WRITERS ATTEMPTS
//
// `guarded` writes through the guard; `checked` reads the greatest token itself, compares, and then
// puts, as clients without a guard do it. Prints "PASSED n STALE n TOKENS n VIOLATIONS n", where a
// violation is a line whose token is smaller than that of a line before it, or one that was
// answered as written and is not there.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/random.h"
#include "guard/s3/dsn.h"
#include "guard/s3/s3_store.h"
#include "pawl/s3.h"

namespace pawl {
namespace {

struct Race {
  S3Options options;
  std::string key;
  bool guarded = true;
  std::uint64_t attempts = 0;  // of each writer
  std::atomic<std::uint64_t> newest{1};
  std::atomic<std::uint64_t> passed{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<bool> failed{false};
};

std::vector<std::uint64_t> tokens_of(const std::string& lines) {
  std::vector<std::uint64_t> tokens;
  std::istringstream in(lines);
  std::uint64_t token = 0;
  std::string rest;
  while (in >> token >> rest) tokens.push_back(token);
  return tokens;
}

void fail(Race& race, const std::string& why) {
  if (!race.failed.exchange(true)) std::cerr << why << "\n";
}

void attempt_guarded(Race& race, S3Guard& guard, std::uint64_t token, const std::string& line) {
  const auto done = guard.update(token, race.key, [&](const std::optional<std::string>& before) {
    return before.value_or("") + line;
  });
  if (done) {
    ++race.passed;
  } else if (done.error().code == Code::kStaleToken) {
    ++race.stale;
  } else {
    fail(race, done.error().detail);
  }
}

void attempt_checked(Race& race, guard::ObjectStore& store, std::uint64_t token,
                     const std::string& line) {
  constexpr std::size_t kMax = std::size_t{1} << 26;
  const auto before = store.get(race.key, kMax);
  if (!before) return fail(race, before.error().detail);
  const std::string lines = *before ? (*before)->bytes : "";
  for (const std::uint64_t other : tokens_of(lines)) {
    if (other <= token) continue;
    ++race.stale;
    return;
  }
  const auto done = store.put(race.key, lines + line, {}, guard::EtagForm::kQuoted);
  if (!done) return fail(race, done.error().detail);
  ++race.passed;
}

void run_writer(Race& race, std::uint64_t number) {
  SeededRandom random(number);
  S3Guard guard(race.options);
  auto store = guard::open_s3_store(race.options);
  for (std::uint64_t i = 0; i < race.attempts && !race.failed; ++i) {
    if (random.below(4) == 0) ++race.newest;
    const std::uint64_t late = random.below(4);
    const std::uint64_t newest = race.newest;
    const std::uint64_t token = newest > late ? newest - late : 1;
    const std::string line =
        std::to_string(token) + " " + std::to_string(number) + "-" + std::to_string(i) + "\n";
    if (race.guarded) {
      attempt_guarded(race, guard, token, line);
    } else {
      attempt_checked(race, **store, token, line);
    }
  }
}

std::string content_of(Race& race) {
  if (race.guarded) return S3Guard(race.options).read(race.key)->value_or("");
  const auto object = (*guard::open_s3_store(race.options))->get(race.key, std::size_t{1} << 26);
  return object && *object ? (*object)->bytes : "";
}

int run(int argc, char** argv) {
  if (argc != 6) return 64;
  Race race;
  const auto options = guard::parse_s3_dsn(argv[2]);
  if (!options) return 64;
  race.options = *options;
  race.options.inline_max = std::size_t{1} << 20;
  race.key = argv[3];
  race.guarded = std::string(argv[1]) == "guarded";
  const auto writers = static_cast<std::uint64_t>(std::atoi(argv[4]));
  race.attempts = static_cast<std::uint64_t>(std::atoi(argv[5])) / writers;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= writers; ++i)
    threads.emplace_back([&race, i] { run_writer(race, i); });
  for (std::thread& thread : threads) thread.join();
  if (race.failed) return 1;
  const auto tokens = tokens_of(content_of(race));
  std::uint64_t greatest = 0;
  std::uint64_t violations = race.passed - tokens.size();
  for (const std::uint64_t token : tokens) {
    if (token < greatest) ++violations;
    greatest = std::max(greatest, token);
  }
  std::cout << "PASSED " << race.passed << " STALE " << race.stale << " TOKENS "
            << std::set<std::uint64_t>(tokens.begin(), tokens.end()).size() << " VIOLATIONS "
            << violations << "\n";
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}
