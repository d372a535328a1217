// The bounds of the gate; those of everything else are in base/limits.h.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace pawl::limits {

inline constexpr std::size_t kGateHeadMax = 32 * 1024;
inline constexpr std::size_t kGateHeadersMax = 128;
inline constexpr std::size_t kGatePathMax = 2048;
inline constexpr std::size_t kGateChunkLineMax = 256;
// A request body up to this size is read before anything is forwarded; a longer one is streamed.
inline constexpr std::size_t kGateBodyBuffered = 64 * 1024;
// Of one connection, in each direction, before its sender has to wait.
inline constexpr std::size_t kGateUnsentMax = 128 * 1024;
inline constexpr std::size_t kGateConnectionsMax = 10'000;
// Requests that wait for lower tokens, for one resource.
inline constexpr std::size_t kGateWaitingMax = 1024;
inline constexpr std::size_t kGateResourcesMax = 100'000;
// Forwards whose client has got its answer 504, and that may still be answered.
inline constexpr std::size_t kGateLateMax = 1024;
inline constexpr Millis kGateLateWait{10 * 60 * 1000};
// Between two requests, for a head, and for the next bytes of a body in either direction.
inline constexpr Millis kGateIdleMax{60 * 1000};
inline constexpr Millis kGateHeadTime{10 * 1000};
inline constexpr Millis kGateBodyTime{30 * 1000};
inline constexpr Millis kGateConnectTime{5 * 1000};
// How long an orderly stop waits for forwards that are in flight.
inline constexpr Millis kGateStopTime{10 * 1000};

}  // namespace pawl::limits
