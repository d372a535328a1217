// Many writers with old and new tokens replace one object, which counts them.
//
//   s3_race guarded|checked WHERE KEY WRITERS ATTEMPTS
//
// `guarded` writes through the guard; `checked` reads the greatest token itself, compares, and then
// puts, as clients without a guard do it. Prints "PASSED n STALE n TOKENS n VIOLATIONS n", where a
// violation is a write whose token is smaller than that of one before it, or one that was answered
// as written and is not counted.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/random.h"
#include "guard/s3/dsn.h"
#include "guard/s3/s3_store.h"
#include "pawl/s3.h"

namespace pawl {
namespace {

constexpr std::size_t kContentMax = 4096;

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

// The content: what has been written, in the order in which it came.
struct Tally {
  std::uint64_t greatest = 0;
  std::uint64_t writes = 0;
  std::uint64_t tokens = 0;   // that were greater than all before
  std::uint64_t smaller = 0;  // writes whose token was smaller than one before
};

Tally to_tally(const std::string& content) {
  Tally tally;
  std::istringstream(content) >> tally.greatest >> tally.writes >> tally.tokens >> tally.smaller;
  return tally;
}

std::string after(Tally tally, std::uint64_t token) {
  ++tally.writes;
  tally.tokens += token > tally.greatest ? 1 : 0;
  tally.smaller += token < tally.greatest ? 1 : 0;
  tally.greatest = std::max(tally.greatest, token);
  std::ostringstream text;
  text << tally.greatest << ' ' << tally.writes << ' ' << tally.tokens << ' ' << tally.smaller;
  return text.str();
}

void fail(Race& race, const std::string& why) {
  if (!race.failed.exchange(true)) std::cerr << why << "\n";
}

void attempt_guarded(Race& race, S3Guard& guard, std::uint64_t token) {
  const auto done = guard.update(token, race.key, [&](const std::optional<std::string>& before) {
    return after(to_tally(before.value_or("")), token);
  });
  if (done) {
    ++race.passed;
  } else if (done.error().code == Code::kStaleToken) {
    ++race.stale;
  } else {
    fail(race, done.error().detail);
  }
}

void attempt_checked(Race& race, guard::ObjectStore& store, std::uint64_t token) {
  const auto before = store.get(race.key, kContentMax);
  if (!before) return fail(race, before.error().detail);
  const Tally tally = to_tally(*before ? (*before)->bytes : "");
  if (token < tally.greatest) {
    ++race.stale;
    return;
  }
  const auto done = store.put(race.key, after(tally, token), {}, guard::EtagForm::kQuoted);
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
    if (race.guarded) {
      attempt_guarded(race, guard, token);
    } else {
      attempt_checked(race, **store, token);
    }
  }
}

std::string content_of(Race& race) {
  if (race.guarded) return S3Guard(race.options).read(race.key)->value_or("");
  const auto object = (*guard::open_s3_store(race.options))->get(race.key, kContentMax);
  return object && *object ? (*object)->bytes : "";
}

int run(int argc, char** argv) {
  if (argc != 6) return 64;
  Race race;
  const auto options = guard::parse_s3_dsn(argv[2]);
  if (!options) return 64;
  race.options = *options;
  race.key = argv[3];
  race.guarded = std::string(argv[1]) == "guarded";
  const auto writers = static_cast<std::uint64_t>(std::atoi(argv[4]));
  race.attempts = static_cast<std::uint64_t>(std::atoi(argv[5])) / writers;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= writers; ++i)
    threads.emplace_back([&race, i] { run_writer(race, i); });
  for (std::thread& thread : threads) thread.join();
  if (race.failed) return 1;
  const Tally tally = to_tally(content_of(race));
  std::cout << "PASSED " << race.passed << " STALE " << race.stale << " TOKENS " << tally.tokens
            << " VIOLATIONS " << tally.smaller + (race.passed - tally.writes) << "\n";
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}
