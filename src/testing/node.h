// pawld in a thread: the real engine on a store in memory, a movable clock and sockets with faults.
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
#include "testing/moved_time.h"
#include "testing/sockets.h"
#include "wire/value.h"

namespace pawl::testing {

// Any thread but its own may call it. Each call is done by its thread between two turns, and is
// done when it returns.
class Node {
 public:
  // `time` is moved along with pawld's own clock.
  Node(server::Listener listener, std::shared_ptr<MovedTime> time);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  // Lives through so much time while nobody hears from it; then the clients' clock follows, and
  // then their answers go out.
  void jump(Nanos by);
  // Serves until nothing is left to serve, and says what went over each connection by then.
  TrafficByPort settle();
  void restart();
  // One command and its answer, as from a connection of its own.
  wire::Value ask(std::vector<std::string_view> words);
  void with_sockets(const std::function<void(Sockets&)>& change);

 private:
  void run();
  void run_jobs();
  void on_thread(std::function<void()> job);
  void start();
  wire::Value ask_inside(const std::vector<std::string_view>& words);

  const std::string address_;
  const std::shared_ptr<MovedTime> time_;
  const UniqueFd wake_;

  std::mutex mutex_;
  std::deque<std::packaged_task<void()>> jobs_;
  bool stopping_ = false;

  // The thread's own.
  NoLog log_;
  SystemRandom random_;
  MovedClock clock_;
  store::MemoryStore store_;
  Sockets sockets_;
  std::unique_ptr<server::Engine> engine_;
  server::ConnectionId inside_;

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace pawl::testing
