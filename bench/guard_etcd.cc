// What the etcd guard costs: the same put, plain (KV.Put) and guarded (EtcdCalls::write), in turns.
//
//   guard_etcd ENDPOINTS CLIENTS ROUNDS MILLISECONDS
//
// In a round each variant runs for so long with all clients, one connection each; the next round is
// in the opposite order. Prints a line for each round: microseconds per put, plain and guarded.
// guard_etcd.py prepares the etcd and reads the lines.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "guard/etcd/calls.h"
#include "guard/etcd/connection.h"

namespace pawl::guard {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

class BenchClient {
 public:
  BenchClient(const std::string& endpoints, int number) : key_("orders/" + std::to_string(number)) {
    auto opened = EtcdConnection::open({.endpoints = endpoints});
    if (!opened) fail(opened.error().detail);
    connection_ = *std::move(opened);
    calls_ = std::make_unique<EtcdCalls>(connection_->as_function());
  }
  void put_plain() {
    const auto done =
        connection_->ask("/etcdserverpb.KV/Put", etcd::encode(etcd::PutRequest{key_, value_}));
    if (!done) fail(done.error().detail);
    if (!done->status.is(etcd::GrpcCode::kOk)) fail(to_text(done->status));
  }
  void put_guarded() {
    const auto done =
        calls_->write({.resources = {"orders"}, .token = "34", .changes = {EtcdPut{key_, value_}}});
    if (!done) fail(done.error().detail);
    if (done->end != EtcdAnswer::End::kAdmitted) fail(done->text);
  }

 private:
  const std::string key_;
  const std::string value_ = std::string(100, 'x');
  std::unique_ptr<EtcdConnection> connection_;
  std::unique_ptr<EtcdCalls> calls_;
};

// Microseconds per put, over all clients.
double measure(std::vector<std::unique_ptr<BenchClient>>& clients, bool guarded,
               std::chrono::milliseconds time) {
  std::atomic<std::uint64_t> count{0};
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&count, &client, guarded, end = begin + time] {
      while (Clock::now() < end) {
        guarded ? client->put_guarded() : client->put_plain();
        count.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
  return took.count() / static_cast<double>(std::max<std::uint64_t>(count, 1));
}

int run(int argc, char** argv) {
  if (argc != 5) fail("guard_etcd ENDPOINTS CLIENTS ROUNDS MILLISECONDS");
  std::vector<std::unique_ptr<BenchClient>> clients;
  for (int i = 0; i < std::atoi(argv[2]); ++i)
    clients.push_back(std::make_unique<BenchClient>(argv[1], i));
  const std::chrono::milliseconds time(std::atoi(argv[4]));
  for (const auto& client : clients) {  // Connect, and read the policy.
    client->put_plain();
    client->put_guarded();
  }
  for (int round = 0; round < std::atoi(argv[3]); ++round) {
    double taken[2];
    for (const bool guarded : {round % 2 == 1, round % 2 == 0})
      taken[guarded ? 1 : 0] = measure(clients, guarded, time);
    std::printf("%.1f %.1f\n", taken[0], taken[1]);
  }
  return 0;
}

}  // namespace
}  // namespace pawl::guard

int main(int argc, char** argv) {
  return pawl::guard::run(argc, argv);
}
