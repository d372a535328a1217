// pawl_flood: asks pawld for more than it can do. An open loop: acquires leave at a fixed rate,
// spread over connections, whether or not the ones before were answered; a grant is released.
// Prints one line of JSON.
//
//   pawl_flood --port 7295 --rate 60000 --seconds 10 [--connections 200]
//
// Where too many of a connection have no answer yet, an acquire is dropped and counted: pawld is
// that far behind.
#include <getopt.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/conversation.h"
#include "bench/loopback.h"
#include "bench/measure.h"

namespace pawl::fire {
namespace {

using bench::monotonic_now;

constexpr std::uint64_t kBurstMax = 4000;
// Of one connection. A quarter of a million in all are seconds of work, and fit in the machine's
// memory.
constexpr std::uint64_t kUnansweredMax = 1250;

struct Plan {
  std::uint16_t port = 0;
  double rate = 1000;  // acquires in a second
  Nanos duration = std::chrono::seconds(10);
  std::size_t connections = 200;
};

struct Tally {
  std::uint64_t asked = 0, dropped = 0, granted = 0, refused = 0, released = 0;
  std::uint64_t behind_max = 0;  // acquires that had no answer yet, at the worst moment
};

// What is sent and expected on one connection, in order.
class Asker {
 public:
  Asker(std::uint16_t port, std::size_t number, Tally& tally)
      : socket_(port), prefix_("flood/" + std::to_string(number) + "/"), tally_(tally) {}

  [[nodiscard]] int fd() const { return socket_.fd(); }

  // A lock of this connection's own, one of a thousand: most are free again by the time it comes
  // round.
  void ask() {
    const std::string lock = prefix_ + std::to_string(next_++ % 1000);
    ++tally_.asked;
    if (unanswered_ < kUnansweredMax) {
      ++unanswered_;
      add({"ACQUIRE", lock, "TTL", "2000"});
    } else {
      ++tally_.dropped;
    }
  }

  // What the socket takes of what was added, in one call.
  void flush() {
    if (unsent_.empty()) return;
    const ssize_t sent = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  }

  void read() {
    const ssize_t got = ::recv(fd(), room_.data(), room_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) throw std::runtime_error("pawld closed a connection");
    unread_.append(room_.data(), static_cast<std::size_t>(got));
    std::string_view rest = unread_;
    while (!rest.empty()) {
      const auto size = bench::frame_size(rest);
      if (!size) throw std::runtime_error("not RESP: " + std::string(rest.substr(0, 80)));
      if (*size == 0) break;
      take(rest.substr(0, *size));
      rest.remove_prefix(*size);
    }
    unread_.erase(0, unread_.size() - rest.size());
  }

 private:
  void take(std::string_view reply) {
    if (reply[0] == ':') {
      ++tally_.released;
      return;
    }
    --unanswered_;
    if (const std::string_view lease = bench::lease_in(reply); !lease.empty()) {
      ++tally_.granted;
      add({"RELEASE", lease});
    } else {
      ++tally_.refused;
    }
  }

  void add(std::initializer_list<std::string_view> words) {
    unsent_ += "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string_view word : words) {
      unsent_ += "$" + std::to_string(word.size()) + "\r\n";
      unsent_.append(word).append("\r\n");
    }
  }

  bench::Loopback socket_;
  const std::string prefix_;
  Tally& tally_;
  std::uint64_t next_ = 0;
  std::uint64_t unanswered_ = 0;  // acquires
  std::string unsent_;
  std::string unread_;
  std::array<char, 64 * 1024> room_{};
};

Tally flood(const Plan& plan) {
  Tally tally;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Asker>> askers;
  for (std::size_t i = 0; i < plan.connections; ++i) {
    askers.push_back(std::make_unique<Asker>(plan.port, i, tally));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = askers.back().get();
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, askers.back()->fd(), &event) != 0)
      bench::fail("epoll_ctl");
  }
  std::array<epoll_event, 256> ready{};
  const Nanos began = monotonic_now();
  for (Nanos now = began; now - began < plan.duration; now = monotonic_now()) {
    const auto due =
        static_cast<std::uint64_t>(plan.rate * std::chrono::duration<double>(now - began).count());
    // Not all that is due at once: a client that only sends never reads a reply.
    const std::uint64_t until = std::min(due, tally.asked + kBurstMax);
    while (tally.asked < until) askers[tally.asked % askers.size()]->ask();
    for (const auto& asker : askers) asker->flush();
    const std::uint64_t answered = tally.granted + tally.refused + tally.dropped;
    tally.behind_max = std::max(tally.behind_max, tally.asked - answered);
    const int count = ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()),
                                   tally.asked < due ? 0 : 1);
    for (int i = 0; i < count; ++i)
      static_cast<Asker*>(ready[static_cast<std::size_t>(i)].data.ptr)->read();
  }
  return tally;
}

double number(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0))
    throw std::runtime_error(std::string("not a positive number: ") + text);
  return value;
}

Plan parse(int argc, char** argv) {
  static const option kOptions[] = {{"port", required_argument, nullptr, 'p'},
                                    {"rate", required_argument, nullptr, 'r'},
                                    {"seconds", required_argument, nullptr, 's'},
                                    {"connections", required_argument, nullptr, 'c'},
                                    {nullptr, 0, nullptr, 0}};
  Plan plan;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (found == '?')
      throw std::runtime_error("usage: pawl_flood --port N --rate N --seconds S [--connections N]");
    const double value = number(optarg);
    if (found == 'p') plan.port = static_cast<std::uint16_t>(value);
    if (found == 'r') plan.rate = value;
    if (found == 's') plan.duration = Nanos(static_cast<Nanos::rep>(value * 1e9));
    if (found == 'c') plan.connections = static_cast<std::size_t>(value);
  }
  return plan;
}

}  // namespace
}  // namespace pawl::fire

int main(int argc, char** argv) {
  try {
    const pawl::fire::Tally tally = pawl::fire::flood(pawl::fire::parse(argc, argv));
    const auto plain = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "{\"asked\": %llu, \"dropped\": %llu, \"granted\": %llu, \"refused\": %llu, \"released\": "
        "%llu, "
        "\"behind_max\": %llu}\n",
        plain(tally.asked), plain(tally.dropped), plain(tally.granted), plain(tally.refused),
        plain(tally.released), plain(tally.behind_max));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl_flood: %s\n", error.what());
    return 1;
  }
  return 0;
}
