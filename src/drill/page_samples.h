// Records made by hand, for the tests of the page and for looking at it.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"

namespace pawl::drill {

[[nodiscard]] Record passed_pause();
[[nodiscard]] Record shadowed_pause();  // stale writes got through a guard in shadow
[[nodiscard]] Record unguarded_pause();
[[nodiscard]] Record flapping(int times);
[[nodiscard]] Record issuer_restart();  // pawld killed and started again; tokens of another era
[[nodiscard]] Record idle();            // nothing was put to the test
[[nodiscard]] Record hostile();         // every text tries to be markup

struct Sample {
  std::string name;
  Record record;
};
[[nodiscard]] std::vector<Sample> samples();

}  // namespace pawl::drill
