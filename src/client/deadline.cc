#include "client/deadline.h"
#include "base/mutants.h"

#include <algorithm>

namespace pawl::client {
namespace {

// What surely has passed on pawld's clock when `span` has passed on ours. Rounded down: a lease
// that ends a nanosecond early is harmless.
Nanos at_least_elapsed(Nanos span) {
  return span / 100 * (100 - (PAWL_MUTANT(drift_ignored) ? 0 : kDriftPercent));
}

}  // namespace

Nanos margin(Millis ttl) {
  if (PAWL_MUTANT(drift_ignored)) return Nanos(0);
  return std::max<Nanos>(kMarginMin, Nanos(ttl) / 100);
}

// Model: lease.pml, action hear_grant.
Instant deadline(const AcquireTiming& acquired) {
  return acquired.first_sent + at_least_elapsed(acquired.waited + acquired.ttl) -
         margin(acquired.ttl);
}

// Model: lease.pml, action hear_renewal.
Instant deadline(const RenewTiming& renewed) {
  return renewed.sent + at_least_elapsed(renewed.answered) - margin(renewed.ttl);
}

bool has_half_ttl_left(Instant deadline, Millis ttl, Instant now) {
  return deadline - now >= Nanos(ttl) / 2;
}

}  // namespace pawl::client
