#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace pawl {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "pawl: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace pawl
