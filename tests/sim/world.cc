#include "sim/world.h"

#include <fmt/format.h>

#include "base/crc32c.h"

namespace pawl::sim {

void World::note(std::string line) {
  const std::string full =
      fmt::format("{:>10.3f} ms  {}\n", static_cast<double>(now_.time_since_epoch().count()) / 1e6, line);
  fingerprint_ = fingerprint_ * 0x9e3779b97f4a7c15 + crc32c(full);
  trace_ += full;
}

}  // namespace pawl::sim
