// Many writers with old and new tokens at once, for race_test.py.
//
//   racer ENDPOINTS guarded|checked WRITERS ATTEMPTS
//
// Tokens grow and stray back. Each write that passes is a key below orders/log/ with its token. Of
// `guarded`, one attempt in ten is an advance; `checked` reads the greatest token, compares, and
// then writes, as clients without a guard do. Prints how many writes passed.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "guard/etcd/calls.h"
#include "guard/etcd/connection.h"

namespace pawl::guard {
namespace {

using End = EtcdAnswer::End;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

class Racer {
 public:
  Racer(const std::string& endpoints, std::uint64_t seed, std::atomic<std::uint64_t>& newest)
      : seed_(seed), dice_(seed), newest_(newest) {
    auto opened = EtcdConnection::open({.endpoints = endpoints, .time_limit = kPatience});
    if (!opened) fail(opened.error().detail);
    connection_ = *std::move(opened);
  }

  std::uint64_t run(bool guarded, std::uint64_t attempts) {
    EtcdCalls calls(connection_->as_function());
    std::uint64_t passed = 0;
    for (std::uint64_t number = 0; number < attempts; ++number) {
      if (dice_.below(10) < 3) newest_.fetch_add(1);
      const std::uint64_t behind = dice_.below(4);
      const std::uint64_t newest = newest_.load();
      const std::uint64_t token = newest > behind ? newest - behind : 1;
      const EtcdPut line{"orders/log/" + std::to_string(seed_) + "-" + std::to_string(number),
                         std::to_string(token)};
      passed += guarded ? write_guarded(calls, token, line) : write_checked(token, line);
    }
    return passed;
  }

 private:
  static constexpr std::chrono::minutes kPatience{5};

  static std::uint64_t write_guarded(EtcdCalls& calls, std::uint64_t token, const EtcdPut& line) {
    const bool advances = token % 10 == 0;
    const auto answer =
        advances
            ? calls.advance("orders", token)
            : calls.write(
                  {.resources = {"orders"}, .token = std::to_string(token), .changes = {line}});
    if (!answer) fail(answer.error().detail);
    if (answer->end != End::kAdmitted && answer->end != End::kStale) fail(answer->text);
    return answer->end == End::kAdmitted && !advances ? 1 : 0;
  }

  std::uint64_t write_checked(std::uint64_t token, const EtcdPut& line) {
    const auto greatest = connection_->range("orders-max", "");
    if (!greatest) fail(greatest.error().detail);
    if (!greatest->empty() && std::stoull(greatest->front().value) > token) return 0;
    put({"orders-max", std::to_string(token)});
    put({line.key, line.value});
    return 1;
  }
  void put(const etcd::PutRequest& request) {
    const auto done = connection_->transact({.success = {request}}, EtcdSending::kOnce);
    if (!done) fail(done.error().detail);
  }

  const std::uint64_t seed_;
  SeededRandom dice_;
  std::atomic<std::uint64_t>& newest_;
  std::unique_ptr<EtcdConnection> connection_;
};

int run(int argc, char** argv) {
  if (argc != 5) fail("racer ENDPOINTS guarded|checked WRITERS ATTEMPTS");
  const bool guarded = std::string(argv[2]) == "guarded";
  const std::uint64_t writers = std::strtoull(argv[3], nullptr, 10);
  const std::uint64_t attempts = std::strtoull(argv[4], nullptr, 10);
  std::atomic<std::uint64_t> newest{1}, passed{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= writers; ++seed) {
    threads.emplace_back(
        [&, seed] { passed += Racer(argv[1], seed, newest).run(guarded, attempts / writers); });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%llu\n", static_cast<unsigned long long>(passed.load()));
  return 0;
}

}  // namespace
}  // namespace pawl::guard

int main(int argc, char** argv) {
  return pawl::guard::run(argc, argv);
}
