// Every bound of Pawl, in one place. Each error that enforces one names it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace pawl::limits {

// --- Tokens --------------------------------------------------------------------------------------

// JSON, Lua and JavaScript hold every token up to this exactly.
inline constexpr std::uint64_t kTokenMax = (std::uint64_t{1} << 53) - 1;
// RAISE moves the counter at most this far.
inline constexpr std::uint64_t kRaiseMax = std::uint64_t{1} << 44;
// token / kTokensPerEra is the era; a restore begins a new one.
inline constexpr std::uint64_t kTokensPerEra = std::uint64_t{1} << 40;
// Tokens are reserved durably in blocks of this size.
inline constexpr std::uint64_t kTokenBlock = 4096;

// --- Arguments of commands -----------------------------------------------------------------------

inline constexpr std::size_t kLockNameMax = 512;
inline constexpr std::size_t kLocksPerLease = 16;
inline constexpr Millis kTtlMin{100};
inline constexpr Millis kTtlMaxDefault{10 * 60 * 1000};
inline constexpr Millis kTtlMaxCeiling{24 * 60 * 60 * 1000};
inline constexpr Millis kWaitMax{60 * 60 * 1000};
inline constexpr Millis kDelayMax{60 * 1000};
inline constexpr Millis kMaxHoldMax{365LL * 24 * 60 * 60 * 1000};
inline constexpr std::uint32_t kHoldersMax = 1024;  // LIMIT n
inline constexpr std::size_t kOwnerMax = 128;
inline constexpr std::size_t kMetaPairs = 8;
inline constexpr std::size_t kMetaBytes = 1024;
inline constexpr std::size_t kRequestMin = 22;
inline constexpr std::size_t kRequestMax = 64;
inline constexpr std::size_t kReasonMax = 256;
inline constexpr std::size_t kBreakNotes = 256;      // whose reason a holder is told
inline constexpr std::size_t kPathMax = 1024;        // BACKUP
inline constexpr std::size_t kRenewsPerCall = 1024;  // MRENEW
inline constexpr std::size_t kCountMax = 1000;       // LOCKS and HISTORY
inline constexpr std::size_t kCountDefault = 100;    // LOCKS and HISTORY
// Holders of a lock that INSPECT and LOCKS show, unless INSPECT asks for more.
inline constexpr std::size_t kHoldersShown = 16;
// The cursor of LOCKS has room for a lock name in hex.
inline constexpr std::size_t kCursorMax = 1100;

// --- Connections ---------------------------------------------------------------------------------

inline constexpr std::size_t kFrameMax = 64 * 1024;
inline constexpr std::size_t kFrameArgsMax = 2048;  // Enough for MRENEW with 1,024 leases.
inline constexpr std::size_t kConnectionsMax = 10'000;
// Further connections, for RENEW, MRENEW, RELEASE and PING only.
inline constexpr std::size_t kConnectionsReserved = kConnectionsMax / 10;
// Of one pawld as text, and how many of those that standbys have named a client keeps.
inline constexpr std::size_t kAddressMax = 300;
inline constexpr std::size_t kNodesLearnt = 8;
// TLS handshakes in progress, in addition to the connections, and the time that each may take.
inline constexpr std::size_t kHandshakesMax = 1024;
inline constexpr Millis kHandshakeTime{10 * 1000};
// Where users exist: connections that have not authenticated, in addition to the others, the time
// that each has for it, the size of its commands until then, and its output that is not read.
inline constexpr std::size_t kNewcomersMax = 1024;
inline constexpr Millis kAuthenticateTime{10 * 1000};
inline constexpr std::size_t kNewcomerFrameMax = 1024;
inline constexpr std::size_t kNewcomerOutputMax = 16 * 1024;
inline constexpr std::size_t kAsyncWaitsPerConnection = 1024;
// Input behind a blocking WAIT; a connection that sends more is closed.
inline constexpr std::size_t kBehindWaitMax = 128 * 1024;
// Output that is not read; a connection with more is closed.
inline constexpr std::size_t kOutputBufferMax = 4 * 1024 * 1024;
// The same of all connections together; of the user with most the connections with most are closed.
inline constexpr std::size_t kOutputTotalMax = 256 * 1024 * 1024;

// --- Memory of leases and waiters, in all and for one user ---------------------------------------

// Each is refused with -BUSY and its name; pawld's configuration may say other numbers. A request
// that waits counts as a lease too, for it may become one at any time.
inline constexpr std::size_t kLeasesMax = 2'000'000;
inline constexpr std::size_t kLeasesPerUser = kLeasesMax / 4;
inline constexpr std::size_t kWaitersMax = 1'000'000;
inline constexpr std::size_t kWaitersPerUser = kWaitersMax / 4;
// An estimate: names, owner, metadata and request id, and this much for each lease or waiter.
inline constexpr std::size_t kLeaseBytesFixed = 256;
inline constexpr std::size_t kLeaseBytesMax = std::size_t{1} << 30;
inline constexpr std::size_t kLeaseBytesPerUser = kLeaseBytesMax / 4;

// --- Asks to let go ------------------------------------------------------------------------------

// Locks whose holders were asked and have not let go, in all and by one user.
inline constexpr std::size_t kAsksMax = 10'000;
inline constexpr std::size_t kAsksPerUser = kAsksMax / 4;
// The holders of one lock are asked at most this often.
inline constexpr Millis kAskAgainAfter{1000};

// --- A turn of the loop --------------------------------------------------------------------------

// Work is counted in units of about a nanosecond: a byte that is written, a node (a holder, a place
// of a queue, an epoch) that is visited, a command.
inline constexpr std::uint64_t kWorkPerNode = 64;
inline constexpr std::uint64_t kWorkPerCommand = 4096;
// One turn does about this much, some 20 ms, and once more as much for commands that are served
// first; the rest waits for the next turn.
inline constexpr std::uint64_t kWorkPerTurn = 4096 * kWorkPerCommand;

// --- HTTP, and the queue between its thread and the loop's ---------------------------------------

inline constexpr std::size_t kHttpConnectionsMax = 1024;
// Further connections, for renewals and releases only.
inline constexpr std::size_t kHttpConnectionsReserved = kHttpConnectionsMax / 8;
// Connections that have had no request of a valid user, in addition to these. Over TLS each costs
// some 90 KiB before it has said anything.
inline constexpr std::size_t kHttpNewcomersMax = 256;
// What all of these may have sent of requests that are not answered.
inline constexpr std::size_t kHttpNewcomerBytesMax = 4 * 1024 * 1024;
inline constexpr std::size_t kHttpHeaderMax = 16 * 1024;
inline constexpr std::size_t kHttpBodyMax = 64 * 1024;
inline constexpr Millis kHttpWaitMax{60 * 1000};
// Between two requests of one connection.
inline constexpr Millis kHttpIdleMax{60 * 1000};
// From the first byte of a request to its last.
inline constexpr Millis kHttpRequestMax{10 * 1000};
// For the client to read what was written.
inline constexpr Millis kHttpWriteMax{30 * 1000};
// A stream without events sends a comment after this time, to show that it is alive.
inline constexpr Millis kHttpQuietMax{15 * 1000};
inline constexpr std::size_t kMailboxConnections =
    kHttpConnectionsMax + kHttpConnectionsReserved + kHttpNewcomersMax;
inline constexpr std::size_t kMailboxMessages = 4 * kMailboxConnections;
inline constexpr std::size_t kMailboxUnread = 256 * 1024;
// Taken by one turn of the loop, so that lists never delay renewals.
inline constexpr std::size_t kMailboxPerTurn = 16;

// --- etcd ----------------------------------------------------------------------------------------

// One transaction: etcd refuses larger ones, unless it is configured otherwise.
inline constexpr std::size_t kEtcdRequestMax = 3 * 512 * 1024;
// One answer of etcd, and the keys, operations or events in it.
inline constexpr std::size_t kEtcdAnswerMax = 64 * 1024 * 1024;
inline constexpr std::size_t kEtcdItemsMax = 64 * 1024;
// The address of the active node in the head of the log.
inline constexpr std::size_t kEtcdAddressMax = 128;
// Of a batch in one entry of the log, and of the records that cleaning carries along with it.
inline constexpr std::size_t kEtcdEntryMax = 512 * 1024;
inline constexpr std::size_t kEtcdCarriedMax = 64 * 1024;
// Of a text that etcd sends for people; the rest is cut off.
inline constexpr std::size_t kEtcdTextMax = 1024;
// Calls and watches under way, and reports of troubles that nobody has taken.
inline constexpr std::size_t kEtcdCallsMax = 256;
inline constexpr std::size_t kEtcdTroublesMax = 256;

// --- Object stores -------------------------------------------------------------------------------

// Of the headers of an answer, and of an answer that is not the content of an object.
inline constexpr std::size_t kStoreHeaderMax = 64 * 1024;
inline constexpr std::size_t kStoreAnswerMax = 4 * 1024 * 1024;
// Of the content of a guarded object, which is in memory when it is written and read.
inline constexpr std::size_t kFencedContentMax = 64 * 1024 * 1024;
// The lines of a fenced object in front of its content.
inline constexpr std::size_t kFencedHeaderMax = 16 * 1024;
// The last writes of a fenced object that it names, so that lost answers can be settled.
inline constexpr std::size_t kFencedNoncesMax = 32;
// Of a key in a bucket; what Pawl adds to it must fit into the 1,024 bytes of S3.
inline constexpr std::size_t kFencedKeyMax = 200;
// Guards in one bucket, and data objects of one guard, that are listed.
inline constexpr std::size_t kFencedListMax = 100'000;

// --- Memory of the past --------------------------------------------------------------------------

// The event ring. A batch with more events than fit is reported as a reset.
inline constexpr std::size_t kEventsKept = 64 * 1024;
// Bytes of names, owners and reasons in these events.
inline constexpr std::size_t kEventBytesKept = 8 * 1024 * 1024;
inline constexpr std::size_t kObserversMax = 1024;
inline constexpr std::size_t kObserversPerUser = kObserversMax / 4;
inline constexpr std::size_t kPrefixesPerObserver = 16;
inline constexpr std::size_t kHistoryEpochs = 100'000;
inline constexpr std::size_t kHistoryBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kRequestsRemembered = 1'000'000;
inline constexpr Millis kRequestMemory{60 * 1000};

// --- Time ----------------------------------------------------------------------------------------

// A pause of pawld itself beyond this does not count against leases.
inline constexpr Millis kPauseMax{250};
// A backup that makes no step for so long is given up: its disk does not answer.
inline constexpr Millis kBackupStallMax{10 * 60 * 1000};

}  // namespace pawl::limits
