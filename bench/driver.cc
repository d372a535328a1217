#include "bench/driver.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/loopback.h"

namespace pawl::bench {
namespace {

constexpr Nanos kDrainMax = std::chrono::seconds(20);

// The names that redis gives to the scripts: "$40\r\n<name>\r\n".
std::vector<std::string> prepare(const Plan& plan) {
  std::vector<std::string> scripts;
  const std::vector<std::string> requests = preparation(plan.peer);
  if (requests.empty()) return scripts;
  const Loopback server(plan.port);
  std::array<char, kReplyMax> room{};
  for (const std::string& request : requests) {
    const std::string reply(server.ask(request, room.data()));
    if (reply.size() != 47 || !reply.starts_with("$40\r\n"))
      throw std::runtime_error("SCRIPT LOAD: " + reply);
    scripts.push_back(reply.substr(5, 40));
  }
  return scripts;
}

struct Connection {
  Connection(std::uint16_t port, Conversation conversation)
      : socket(port), talk(std::move(conversation)) {}

  Loopback socket;
  Conversation talk;
  std::vector<Step>* part = nullptr;  // opening, round or closing
  std::size_t at = 0;                 // the step of `part` that awaits its reply
  bool idle = true;                   // nothing under way
  Nanos round_began{};
  std::size_t filled = 0;
  std::array<char, kReplyMax> reply{};
};

class EpollDriver {
 public:
  explicit EpollDriver(const Plan& plan) : plan_(plan), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) fail("epoll_create1");
    const std::vector<std::string> scripts = prepare(plan);
    for (std::size_t i = 0; i < plan.connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(
          plan.port, conversation(plan.peer, plan.workload, plan.run, i, scripts)));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = connections_.back().get();
      if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back()->socket.fd(), &event) != 0)
        fail("epoll_ctl");
    }
  }
  ~EpollDriver() { ::close(epoll_); }
  EpollDriver(const EpollDriver&) = delete;
  EpollDriver& operator=(const EpollDriver&) = delete;

  Measured run() {
    once(&Conversation::opening);
    for (auto& each : connections_) begin(*each, each->talk.round);
    run_until(monotonic_now() + plan_.warmup);
    measure();
    repeat_ = false;
    drain();
    once(&Conversation::closing);
    return std::move(measured_);
  }

 private:
  void measure() {
    const CpuTimes cpu_before = cpu_times(plan_.server);
    const Nanos began = monotonic_now();
    measuring_ = true;
    run_until(began + plan_.duration);
    measured_.elapsed = monotonic_now() - began;
    measuring_ = false;
    const CpuTimes cpu_after = cpu_times(plan_.server);
    measured_.cpu = cpu_after - cpu_before;
  }

  void once(std::vector<Step> Conversation::*part) {
    for (auto& each : connections_) {
      if (!((*each).talk.*part).empty()) begin(*each, (*each).talk.*part);
    }
    drain();
  }

  void drain() {
    const Nanos deadline = monotonic_now() + kDrainMax;
    while (busy_ > 0) {
      if (monotonic_now() > deadline) throw std::runtime_error("rounds under way did not end");
      turn();
    }
  }

  void run_until(Nanos deadline) {
    do {
      turn();
    } while (now_ < deadline &&
             (plan_.operations_max == 0 || measured_.operations < plan_.operations_max));
  }

  void turn() {
    std::array<epoll_event, 256> events;
    const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 100);
    if (ready < 0 && errno != EINTR) fail("epoll_wait");
    now_ = monotonic_now();
    for (int i = 0; i < ready; ++i)
      receive(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
  }

  void receive(Connection& from) {
    from.filled +=
        from.socket.receive(from.reply.data() + from.filled, from.reply.size() - from.filled);
    const std::string_view bytes(from.reply.data(), from.filled);
    const Step& asked = (*from.part)[from.at];
    const std::size_t size = asked.expect == Expect::kSame
                                 ? asked.request.size()
                                 : frame_size(bytes).value_or(from.filled);
    if (size == 0 || from.filled < size) {
      if (from.filled == from.reply.size()) throw std::runtime_error("a reply is too long");
      return;
    }
    from.filled = 0;
    go_on(from, bytes);
  }

  void go_on(Connection& from, std::string_view reply) {
    std::size_t next = from.at + 1;
    if (!take_reply(from.talk, (*from.part)[from.at], reply)) {
      measured_.note_error(reply);
      next = from.part->size();  // A round that went wrong ends here.
    } else if ((*from.part)[from.at].expect == Expect::kTokenOrNil && reply[0] == ':') {
      ++next;
    }
    if (next < from.part->size()) {
      from.at = next;
      send(from);
    } else {
      end(from);
    }
  }

  void begin(Connection& with, std::vector<Step>& part) {
    with.part = &part;
    with.at = 0;
    with.idle = false;
    with.round_began = now_ = monotonic_now();
    ++busy_;
    send(with);
  }

  void end(Connection& with) {
    with.idle = true;
    --busy_;
    if (with.part != &with.talk.round) return;
    const Nanos ended = monotonic_now();
    if (measuring_) {
      measured_.latency.add(ended - with.round_began);
      ++measured_.operations;
    }
    if (repeat_) begin(with, with.talk.round);
  }

  static void send(Connection& to) { to.socket.send((*to.part)[to.at].request); }

  const Plan& plan_;
  int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t busy_ = 0;  // connections with something under way
  bool repeat_ = true;    // begin another round when one ends
  Nanos now_{};           // read once per turn
  bool measuring_ = false;
  Measured measured_;
};

}  // namespace

Measured drive(const Plan& plan) {
  return EpollDriver(plan).run();
}

}  // namespace pawl::bench
