// The small values of the domain, shared by every folder. Each has its own type, so that none can
// be passed for another.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pawl {

template <class Tag>
struct Number {
  std::uint64_t value = 0;
  auto operator<=>(const Number&) const = default;
};

// Grows with every grant; guards compare it. 0 = none.
using Token = Number<struct TokenTag>;
// Identifies a request that expects a reply. Made by the server, opaque to the core.
using WaiterId = Number<struct WaiterTag>;
// The order of batches within one run of the core. 0 = none.
using BatchId = Number<struct BatchTag>;
// One lineage of a store; a restored store starts a new one.
using Incarnation = Number<struct IncarnationTag>;

// The secret handle of one grant: 128 random bits. A client that knows it is the holder.
struct LeaseId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const LeaseId&) const = default;
};

enum class Mode : std::uint8_t {
  kExclusive = 0,  // One holder; the only mode whose holders write.
  kShared = 1,     // Readers among themselves.
  kLimit = 2,      // Up to n holders, each in a slot of its own.
};

using Millis = std::chrono::milliseconds;
using Nanos = std::chrono::nanoseconds;

// Service time: monotonic time without the part of any pause of pawld itself beyond
// limits::kPauseMax. Leases expire by it.
struct ServiceTime {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<ServiceTime>;
  static constexpr bool is_steady = true;
};
using Tick = ServiceTime::time_point;
inline constexpr Tick kNever = Tick::max();

// Unix milliseconds, for people. Nothing is decided by it.
using UnixMs = Number<struct UnixMsTag>;

// The one clock reading of a turn: `tick` decides, `wall` is only displayed.
struct Now {
  Tick tick{};
  UnixMs wall{};
};

}  // namespace pawl

template <class Tag>
struct std::hash<pawl::Number<Tag>> {
  std::size_t operator()(const pawl::Number<Tag>& n) const noexcept {
    return std::hash<std::uint64_t>{}(n.value);
  }
};
