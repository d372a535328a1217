// Every bound of Pawl, in one place. Each error that enforces one names it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace pawl::limits {

inline constexpr std::uint64_t kTokenMax =
    (std::uint64_t{1} << 53) - 1;  // JSON, Lua and JavaScript hold it exactly.
inline constexpr std::uint64_t kRaiseMax = std::uint64_t{1}
                                           << 44;  // RAISE moves the counter at most this far.
inline constexpr std::uint64_t kTokensPerEra =
    std::uint64_t{1} << 40;  // token / this = the era; a restore begins a new one.
inline constexpr std::uint64_t kTokenBlock = 4096;  // Tokens reserved durably at a time.

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
inline constexpr std::size_t kPathMax = 1024;  // BACKUP

inline constexpr std::size_t kFrameMax = 64 * 1024;
inline constexpr std::size_t kFrameArgsMax = 2048;  // Enough for MRENEW with 1,024 leases.
inline constexpr std::size_t kRenewsPerCall = 1024;
inline constexpr std::size_t kCountMax = 1000;  // LOCKS and HISTORY
inline constexpr std::size_t kCountDefault = 100;
inline constexpr std::size_t kCursorMax = 1100;  // LOCKS: room for a lock name in hex.

inline constexpr std::size_t kConnectionsMax = 10'000;
inline constexpr std::size_t kConnectionsReserved =
    kConnectionsMax / 10;                            // RENEW, MRENEW, RELEASE, PING only.
inline constexpr std::size_t kHandshakesMax = 1024;  // TLS handshakes under way, besides.
inline constexpr Millis kHandshakeTime{10 * 1000};   // that each may take
inline constexpr std::size_t kAsyncWaitsPerConnection = 1024;
inline constexpr std::size_t kWaitersMax = 1'000'000;
inline constexpr std::size_t kBehindWaitMax =
    128 * 1024;  // Sent behind a blocking WAIT; a connection with more is cut.
inline constexpr std::size_t kOutputBufferMax = 4 * 1024 * 1024;  // A slower reader is cut.

// HTTP, and the lane between its thread and the loop's.
inline constexpr std::size_t kHttpConnectionsMax = 1024;
inline constexpr std::size_t kHttpHeaderMax = 16 * 1024;
inline constexpr std::size_t kHttpBodyMax = 64 * 1024;
inline constexpr Millis kHttpWaitMax{60 * 1000};
inline constexpr Millis kHttpIdleMax{60 * 1000};     // between two requests of one connection
inline constexpr Millis kHttpRequestMax{10 * 1000};  // from a request's first byte to its last
inline constexpr Millis kHttpWriteMax{30 * 1000};    // for the reader to take what was written
inline constexpr Millis kHttpQuietMax{15 *
                                      1000};  // a stream with nothing to say says that it lives
inline constexpr std::size_t kLaneConnections = kHttpConnectionsMax;
inline constexpr std::size_t kLaneMessages = 4096;
inline constexpr std::size_t kLaneUnread = 256 * 1024;
inline constexpr std::size_t kLanePerTurn =
    16;  // Taken by one turn of the loop, so that lists never delay renewals.

// The event ring. A batch with more events than fit is told as a reset.
inline constexpr std::size_t kEventsKept = 64 * 1024;
inline constexpr std::size_t kEventBytesKept =
    8 * 1024 * 1024;  // names, owners and reasons in them
inline constexpr std::size_t kObserversMax = 1024;
inline constexpr std::size_t kPrefixesPerObserver = 16;

inline constexpr std::size_t kHistoryEpochs = 100'000;
inline constexpr std::size_t kRequestsRemembered = 1'000'000;
inline constexpr Millis kRequestMemory{60 * 1000};

inline constexpr Millis kPauseMax{
    250};  // A longer gap of pawld itself does not count against leases.

}  // namespace pawl::limits
