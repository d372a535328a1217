// Durations on the command line.
#pragma once

#include "base/duration.h"

namespace pawl::cli {

using pawl::parse_duration;
using pawl::to_text;

}  // namespace pawl::cli
