#include "pawld/descriptors.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace pawl::pawld {
namespace {

// With fewer nobody could work; a limit this low is an error of the configuration.
constexpr std::size_t kLeast = 2;

// Those that are open now, such as what the parent process left open.
std::size_t open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator list("/proc/self/fd", error);
  return error ? 3 : static_cast<std::size_t>(std::distance(begin(list), end(list)));
}

}  // namespace

std::size_t ConnectionLimits::descriptors(const Uses& uses) const {
  return ordinary + reserved + (uses.users ? newcomers : 0) + (uses.tls ? handshakes : 0) +
         (uses.http ? http + http_reserved + http_newcomers : 0);
}

ConnectionLimits connection_limits(std::size_t descriptors, const Uses& uses) {
  ConnectionLimits limits;
  const std::size_t needed = limits.descriptors(uses);
  if (descriptors >= needed) return limits;
  for (std::size_t* one :
       {&limits.ordinary, &limits.reserved, &limits.newcomers, &limits.handshakes, &limits.http,
        &limits.http_reserved, &limits.http_newcomers})
    *one = std::max(kLeast, *one * descriptors / needed);
  return limits;
}

ConnectionLimits fit_to_descriptor_limit(const Uses& uses, Log& log) {
  const std::size_t kept = open_descriptors() + kDescriptorsKept;
  const std::size_t needed = ConnectionLimits().descriptors(uses) + kept;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  if (limit.rlim_cur < needed) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, needed);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  if (limit.rlim_cur >= needed) return {};
  const auto allowed = static_cast<std::size_t>(limit.rlim_cur);
  const ConnectionLimits fitted = connection_limits(allowed - std::min(allowed, kept), uses);
  log.warning(
      fmt::format("only {} file descriptors are allowed, and all limits together need {}: at most "
                  "{} connections instead of {}, {} more for renewals, and {} connections of HTTP "
                  "instead of {}. Raise the limit (LimitNOFILE of the unit, or ulimit -n)",
                  allowed, needed, fitted.ordinary, limits::kConnectionsMax, fitted.reserved,
                  fitted.http, limits::kHttpConnectionsMax),
      {{"event", "few_descriptors"},
       {"allowed", allowed},
       {"needed", needed},
       {"connections", fitted.ordinary}});
  return fitted;
}

}  // namespace pawl::pawld
