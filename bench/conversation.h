// The messages of one connection of the load generator, per peer and workload: plain data, built
// once before the clock starts. The driver only sends bytes, checks replies and follows the order
// of the steps.
//
//   Conversation talk = conversation(Peer::kPawl, Workload::kCycle, "run7", 12, {});
//   `opening` once, then `round` repeatedly (each round is one operation), then `closing` once.
//
// All peers must do the same work:
//   cycle    Acquire and release a lock that no other connection uses.
//            pawl: ACQUIRE, RELEASE.
//            redis: the usual pair of atomic scripts (SET NX PX + INCR; compare-and-delete).
//            echo: two messages of the size that pawl receives.
//   handoff  All connections want one lock, in order of arrival.
//            pawl: ACQUIRE … WAIT, RELEASE.
//            redis: one durable write per handoff, the best known way there (conversation.cc).
//   renew    Extend a lease that is held.
//            pawl: RENEW.  redis: compare-and-PEXPIRE.  echo: one message of RENEW's size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::bench {

enum class Peer { kPawl, kRedis, kEcho };  // Both echo servers speak alike.
enum class Workload { kCycle, kHandoff, kRenew };

// What makes a reply the right one.
enum class Expect {
  kGrant,       // pawl's map, with a lease. The lease is copied into every request that needs it.
  kPositive,    // an integer above zero
  kTokenOrNil,  // an integer: got it, so skip the next step; nil: queued, so take it
  kPair,        // an array of two, as BLPOP answers
  kSame,        // as many bytes as were sent
};

inline constexpr std::size_t kLeaseSize = 32;
inline constexpr std::size_t kNoLease = std::string::npos;

struct Step {
  std::string request;
  Expect expect = Expect::kSame;
  std::size_t lease_at = kNoLease;  // Where in `request` the lease goes.
};

struct Conversation {
  std::vector<Step> opening;
  std::vector<Step> round;
  std::vector<Step> closing;
};

// Whether `reply` is what `step` of `talk` expects. A lease in it is copied into the requests that
// need it.
bool take_reply(Conversation& talk, const Step& step, std::string_view reply);

// 24 and 16 bytes, as in the memory measurement. Unique to `run`, so that leases that an earlier
// run left behind do not block this one.
struct Names {
  std::string lock;
  std::string owner;
};
Names names(Workload workload, std::string_view run, std::size_t connection);

// Requests to send, in this order, before any conversation: redis must know the scripts. Each is
// answered by the name of one script, and conversation() wants those names. Empty for the other
// peers.
std::vector<std::string> preparation(Peer peer);

Conversation conversation(Peer peer, Workload workload, std::string_view run,
                          std::size_t connection, const std::vector<std::string>& scripts);

// Bytes of the first whole RESP value in `bytes`; 0 when it is not all there yet; nullopt when it
// is not RESP.
std::optional<std::size_t> frame_size(std::string_view bytes);

// The lease in pawl's reply to ACQUIRE; empty when there is none.
std::string_view lease_in(std::string_view reply);

}  // namespace pawl::bench
