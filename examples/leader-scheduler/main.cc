// A scheduler that may run on any number of machines, and works on one: the leader's. The others
// wait, and one of them takes over when the leader ends, or cannot be sure any more that it leads.
//
//   scheduler [ADDRESS [NAME]]
#include <pawl/pawl.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

// In one piece, whichever thread says it.
void say(const std::string& name, const std::string& what) {
  std::cout << name + " " + what + "\n" << std::flush;
}

// Returns when leadership ends or a stop is requested.
void lead(const std::string& name, const pawl::Lease& leadership, const std::stop_token& stop) {
  const std::stop_token lost = leadership.lost();
  std::mutex mutex;
  std::condition_variable_any pause;
  const std::stop_callback wake(stop, [&] {
    const std::lock_guard lock(mutex);
    pause.notify_all();
  });
  for (int turn = 1; leadership.check() && !stop.stop_requested(); ++turn) {
    // Here goes what is due. Send the token along with every write, so that the resource can refuse
    // an old leader's.
    say(name,
        "does turn " + std::to_string(turn) + " with token " + std::to_string(leadership.token()));
    std::unique_lock lock(mutex);
    pause.wait_for(lock, lost, 100ms, [&] { return stop.stop_requested(); });
  }
}

int main(int argc, char** argv) {
  const std::string name = argc > 2 ? argv[2] : "scheduler";

  // TERM and INT end it cleanly. Blocked before any thread exists, so that only this one hears of
  // them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::stop_source stop;
  std::thread([ends, stop]() mutable {
    int signal = 0;
    sigwait(&ends, &signal);
    stop.request_stop();
  }).detach();

  pawl::Client client(argc > 1 ? argv[1] : "127.0.0.1:7295");
  pawl::Election election(client, "examples/scheduler");
  const auto observation = election.observe([&](const auto& leader) {
    if (leader)
      say(name, "sees " + (*leader ? (*leader)->value.value_or("someone") : "nobody") + " leading");
  });
  while (!stop.stop_requested()) {
    auto leadership = election.campaign(name, {.ttl = 3s}, stop.get_token());
    if (!leadership && stop.stop_requested()) break;
    if (!leadership) {
      std::cerr << "cannot campaign: " << leadership.error().detail << "\n";
      return 69;
    }
    lead(name, *leadership, stop.get_token());
    if (auto resigned = election.resign(*std::move(leadership)); !resigned)
      std::cerr << "cannot resign: " << resigned.error().detail << "\n";
  }
  say(name, "ends");
}
