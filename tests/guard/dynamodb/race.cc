// Many writers with old and new tokens add their token to a list in one item.
//
//   dynamo_race guarded|checked WHERE RESOURCE ID WRITERS ATTEMPTS
//
// `guarded` writes through the guard of RESOURCE; `checked` reads the last token itself, compares,
// and then writes, as clients without a guard do it. Prints "PASSED n STALE n TOKENS n VIOLATIONS
// n", where a violation is a token in the list that is smaller than one before it, or a write that
// was answered as done and is not in the list.
#include <boost/json/array.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "base/random.h"
#include "guard/dynamodb/calls.h"
#include "guard/dynamodb/dsn.h"
#include "guard/dynamodb/front.h"
#include "pawl/dynamodb.h"

namespace pawl {
namespace {

struct Race {
  DynamoOptions options;
  std::string resource;
  std::string id;
  bool guarded = true;
  std::uint64_t attempts = 0;  // of each writer
  std::atomic<std::uint64_t> newest{1};
  std::atomic<std::uint64_t> passed{0};
  std::atomic<std::uint64_t> stale{0};
  std::atomic<bool> failed{false};
};

void fail(Race& race, const std::string& why) {
  if (!race.failed.exchange(true)) std::cerr << why << "\n";
}

DynamoUpdate add(const Race& race, std::uint64_t token) {
  return {.table = "orders",
          .key = {{"id", DynamoValue::text(race.id)}},
          .update = "SET #l = list_append(if_not_exists(#l, :none), :token)",
          .names = {{"#l", "log"}},
          .values = {{":none", DynamoValue::json(R"({"L":[]})")},
                     {":token",
                      DynamoValue::json(R"({"L":[{"N":")" + std::to_string(token) + R"("}]})")}}};
}

void attempt_guarded(Race& race, DynamoGuard& guard, std::uint64_t token) {
  const auto done = guard.write(token, race.resource, add(race, token));
  if (done) {
    ++race.passed;
  } else if (done.error().code == Code::kStaleToken) {
    ++race.stale;
  } else {
    fail(race, done.error().detail);
  }
}

std::vector<std::uint64_t> read_log(Race& race, guard::DynamoCalls& calls) {
  std::vector<std::uint64_t> tokens;
  const auto item = calls.read_item("orders", {{"id", guard::string_value(race.id)}});
  if (!item) fail(race, item.error().detail);
  if (!item || !*item) return tokens;
  const auto log = guard::object_in(**item, "log");
  if (!log) return tokens;
  for (const auto& each : log->at("L").as_array())
    tokens.push_back(std::stoull(std::string(each.at("N").as_string())));
  return tokens;
}

void attempt_checked(Race& race, guard::DynamoStore& store, guard::DynamoCalls& calls,
                     std::uint64_t token) {
  const auto log = read_log(race, calls);
  if (!log.empty() && token < log.back()) {
    ++race.stale;
    return;
  }
  const auto op = guard::to_op(add(race, token));
  const auto done = guard::call_or_fail(store, "UpdateItem", guard::to_body(*op));
  if (!done) return fail(race, done.error().detail);
  ++race.passed;
}

void run_writer(Race& race, std::uint64_t number) {
  SeededRandom random(number);
  DynamoGuard guard(race.options);
  const auto store = guard::open_dynamo_store(race.options);
  guard::DynamoCalls calls(**store, race.options.guards_table);
  for (std::uint64_t i = 0; i < race.attempts && !race.failed; ++i) {
    if (random.below(4) == 0) ++race.newest;
    const std::uint64_t late = random.below(4);
    const std::uint64_t newest = race.newest;
    const std::uint64_t token = newest > late ? newest - late : 1;
    if (race.guarded) {
      attempt_guarded(race, guard, token);
    } else {
      attempt_checked(race, **store, calls, token);
    }
  }
}

int run(int argc, char** argv) {
  if (argc != 7) return 64;
  Race race;
  const auto options = guard::parse_dynamo_dsn(argv[2]);
  if (!options) return 64;
  race.options = *options;
  race.resource = argv[3];
  race.id = argv[4];
  race.guarded = std::string(argv[1]) == "guarded";
  const auto writers = static_cast<std::uint64_t>(std::atoi(argv[5]));
  race.attempts = static_cast<std::uint64_t>(std::atoi(argv[6])) / writers;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= writers; ++i)
    threads.emplace_back([&race, i] { run_writer(race, i); });
  for (std::thread& thread : threads) thread.join();
  if (race.failed) return 1;
  const auto store = guard::open_dynamo_store(race.options);
  guard::DynamoCalls calls(**store, race.options.guards_table);
  std::uint64_t greatest = 0;
  std::uint64_t tokens = 0;
  std::uint64_t smaller = 0;
  const auto log = read_log(race, calls);
  for (const std::uint64_t token : log) {
    tokens += token > greatest ? 1 : 0;
    smaller += token < greatest ? 1 : 0;
    greatest = std::max(greatest, token);
  }
  std::cout << "PASSED " << race.passed << " STALE " << race.stale << " TOKENS " << tokens
            << " VIOLATIONS " << smaller + (race.passed - log.size()) << "\n";
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}
