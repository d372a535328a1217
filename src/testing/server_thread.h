// pawld in a thread: the real engine with a store in memory, a movable clock and sockets with
// faults.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "server/engine.h"
#include "store/memory_store.h"
#include "testing/faulty_sockets.h"
#include "testing/test_clocks.h"
#include "wire/value.h"

namespace pawl::testing {

// May be called from any other thread. Each call runs on the server's thread between two turns, and
// is complete when it returns.
class ServerThread {
 public:
  // `time` moves along with pawld's own clock.
  ServerThread(server::Listener listener, std::shared_ptr<ClientTestClock> time);
  ~ServerThread();
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  // Moves pawld's clock in small steps while its output is held, then the clients' clock, and then
  // releases the output.
  void advance_clock(Nanos by);
  // Serves until nothing is left to serve. Returns the traffic of each connection.
  TrafficByPort settle();
  void restart();
  // Sends one command on an internal connection and returns its reply.
  wire::Value ask(std::vector<std::string_view> words);
  void with_sockets(const std::function<void(FaultySockets&)>& change);

 private:
  void run();
  void run_jobs();
  void on_thread(std::function<void()> job);
  void start();
  wire::Value ask_internal(const std::vector<std::string_view>& words);

  const std::string address_;
  const std::shared_ptr<ClientTestClock> time_;
  const UniqueFd wake_;

  std::mutex mutex_;
  std::deque<std::packaged_task<void()>> jobs_;
  bool stopping_ = false;

  // Used by the thread only.
  NoLog log_;
  SystemRandom random_;
  ServerTestClock clock_;
  store::MemoryStore store_;
  FaultySockets sockets_;
  std::unique_ptr<server::Engine> engine_;
  server::ConnectionId internal_;

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace pawl::testing
