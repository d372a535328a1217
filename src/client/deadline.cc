#include "client/deadline.h"
#include "base/mutants.h"

#include <algorithm>

namespace pawl::client {
namespace {

// Rounded down: a lease that ends a nanosecond early harms nobody.
Nanos surely_passed(Nanos span) {
  return span / 100 * (100 - (PAWL_MUTANT(drift_ignored) ? 0 : kDriftPercent));
}

}  // namespace

Nanos margin(Millis ttl) {
  if (PAWL_MUTANT(drift_ignored)) return Nanos(0);
  return std::max<Nanos>(kMarginMin, Nanos(ttl) / 100);
}

// Model: lease.pml, action hear_grant.
Instant deadline(const Acquired& acquired) {
  return acquired.first_sent + surely_passed(acquired.waited + acquired.ttl) - margin(acquired.ttl);
}

// Model: lease.pml, action hear_renewal.
Instant deadline(const Renewed& renewed) {
  return renewed.sent + surely_passed(renewed.answered) - margin(renewed.ttl);
}

bool worth_handing_out(Instant deadline, Millis ttl, Instant now) {
  return deadline - now >= Nanos(ttl) / 2;
}

}  // namespace pawl::client
