// A worker of which one at a time may work. Start several: the others wait, and one takes over when
// the first ends.
//
//   worker [ADDRESS [STEPS]]
#include <pawl/pawl.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  pawl::Client client(argc > 1 ? argv[1] : "127.0.0.1:7295");
  const int steps = argc > 2 ? std::atoi(argv[2]) : 10;

  auto lease = client.acquire("examples/worker", {.ttl = 5s, .wait = 1min, .progress_every = 10s});
  if (!lease) {
    std::cerr << "not acquired: " << lease.error().detail << "\n";
    return 75;
  }
  std::cout << "working with token " << lease->token() << std::endl;

  const std::stop_token lost = lease->lost();
  std::mutex mutex;
  std::condition_variable_any pause;
  for (int step = 1; step <= steps; ++step) {
    if (const auto still = lease->check(); !still) {
      std::cerr << "stopped: " << still.error().detail << "\n";
      return 122;
    }
    // Here goes the work: send lease->token() along with every write, so that the resource can
    // refuse an old one.
    std::cout << "step " << step << std::endl;
    lease->progress();
    std::unique_lock lock(mutex);
    pause.wait_for(lock, lost, 100ms,
                   [] { return false; });  // Ends at once when the lease is lost.
  }
  const auto released = lease->release();
  std::cout << (released ? "released" : released.error().detail) << std::endl;
}
