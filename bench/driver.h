// Drives N connections in closed loops from one thread: each sends a request, waits for the whole
// reply, goes on.
//
// One send and one recv per message and nothing allocated once the clock runs, because on a small
// machine whatever the generator burns is taken from the server it measures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/conversation.h"
#include "bench/measure.h"

namespace pawl::bench {

// How requests are sent to the peer.
enum class By {
  kEpoll,    // one thread for all connections
  kThreads,  // a thread for each connection, which waits for its replies
  kClient,   // as many threads, but they share one pawl::Client and its one connection
};

struct Plan {
  By by = By::kEpoll;
  Peer peer = Peer::kPawl;
  Workload workload = Workload::kCycle;
  std::uint16_t port = 0;
  std::size_t connections = 1;  // or threads, By::kClient
  std::string run;              // Part of every name; see conversation().
  Nanos warmup = std::chrono::milliseconds(100);
  Nanos duration = std::chrono::seconds(1);
  std::uint64_t operations_max = 0;  // Stop after this many operations; 0: only by time.
  pid_t server = 0;                  // Process whose CPU time is read; 0: none.
};

struct Measured {
  std::uint64_t operations = 0;  // Rounds that ended within the measured time.
  std::uint64_t errors = 0;      // Replies that were not the expected one.
  std::string first_error;
  Nanos elapsed{};
  Histogram latency;  // Of a whole round.
  CpuTimes cpu;       // Used meanwhile.

  void note_error(std::string_view what) {
    if (errors++ == 0) first_error = what.substr(0, 120);
  }
};

// By::kEpoll: opens the connections, warms up, measures, lets every round under way finish and
// every lock go, closes. Throws std::runtime_error when the peer cannot be reached or goes away.
Measured drive(const Plan& plan);

}  // namespace pawl::bench
