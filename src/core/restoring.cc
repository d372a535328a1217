// After a restore nothing is granted for the longest TTL there was: whoever was granted something
// after the backup was made is unknown here, and its lease must have run out first (design rule 9).
// Those who can wait queue up meanwhile.
#include <algorithm>

#include "core/state.h"

namespace pawl::core {

Millis Core::State::restoring_for(Now now) const {
  if (!restoring()) return Millis(0);
  return std::max(Millis(0), std::chrono::ceil<Millis>(grants_from - now.tick));
}

Millis Core::restoring_for(Now now) const {
  return state_->restoring_for(now);
}

void Core::State::end_restoring(Now now) {
  grants_from = kNever;
  batch.erase(kRestoredKey);  // In the same batch as the first grants, or an earlier one.
  std::vector<Index> waited_for;
  for (Index index = 0; index < locks.items.end(); ++index) {
    if (locks.items[index].in_use() && locks.items[index].first_waiter != kNone)
      waited_for.push_back(index);
  }
  for (const Index index : waited_for) {
    if (locks.items[index].in_use()) serve(index, now);
  }
}

}  // namespace pawl::core
