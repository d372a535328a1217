// Everything of libpawl.
#pragma once

#include "pawl/client.h"     // IWYU pragma: export
#include "pawl/coroutine.h"  // IWYU pragma: export
#include "pawl/election.h"   // IWYU pragma: export
#include "pawl/lease.h"      // IWYU pragma: export
#include "pawl/mutex.h"      // IWYU pragma: export
#include "pawl/result.h"     // IWYU pragma: export
#include "pawl/types.h"      // IWYU pragma: export
