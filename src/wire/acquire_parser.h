// ACQUIRE lock [AND lock]… and its options, into an AcquireSpec. Used by RequestParser.
#pragma once

#include "base/acquire_spec.h"
#include "wire/arg_reader.h"
#include "wire/reply_writer.h"

namespace pawl::wire {

// Fills `spec`; what is wrong is kept in `in`.
void parse_acquire(ArgReader& in, AcquireSpec& spec, Millis ttl_max, Protocol protocol);

}  // namespace pawl::wire
