// ACQUIRE lock [AND lock]… and its options, into an AcquireSpec.
//
// Options follow the locks in any order, each at most once (META up to limits::kMetaPairs times);
// their names ignore case. Nothing is clamped: out of range is an error that names the range. That
// ASYNC needs RESP3 is checked here, hence `protocol`.
#pragma once

#include "base/acquire_spec.h"
#include "wire/arg_reader.h"
#include "wire/reply_writer.h"

namespace pawl::wire {

// Fills `spec`; what is wrong is kept in `in`.
void parse_acquire(ArgReader& in, AcquireSpec& spec, Millis ttl_max, Protocol protocol);

}  // namespace pawl::wire
