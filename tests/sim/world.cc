#include "sim/world.h"

#include <fmt/format.h>

namespace pawl::sim {

void World::write(const std::string& line) {
  trace_ += fmt::format("{:>10.3f} ms  {}\n",
                        static_cast<double>(now_.time_since_epoch().count()) / 1e6, line);
}

}  // namespace pawl::sim
