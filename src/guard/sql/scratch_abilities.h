// What a guard in a database can do in each of its forms, and why not the rest. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "guard/session.h"
#include "guard/sql/database.h"

namespace pawl::guard {

struct ScratchAbilities {
  Abilities abilities;
  std::map<Ability, std::string> lacks;  // each of the others
};
[[nodiscard]] ScratchAbilities abilities_of(const SqlTraits& traits,
                                            const std::vector<Lack>& lacks_here, Form form);

}  // namespace pawl::guard
