#include "http/places.h"

namespace pawl::http {

std::optional<Places::Id> Places::add(Id id, Nanos now) {
  return newcomers_.add(id, now);
}

void Places::set_silent(Id id, bool silent, Nanos now) {
  if (newcomers_.contains(id)) return newcomers_.set_waits_for_us(id, !silent);
  if (!admitted_.contains(id)) return;
  if (!silent) return silent_.remove(id);
  if (!silent_.contains(id)) (void)silent_.add(id, now);
}

Places::Admitted Places::admit(Id id) {
  if (const auto found = admitted_.find(id); found != admitted_.end()) {
    if (found->second == Admission::kRenewals && ordinary_ < bounds_.ordinary) {
      found->second = Admission::kAll;
      --reserved_;
      ++ordinary_;
    }
    return {found->second};
  }
  if (!newcomers_.contains(id)) return {};
  Admitted admitted;
  if (ordinary_ >= bounds_.ordinary) {
    admitted.displaced = silent_.displace_silent();
    if (admitted.displaced) remove(*admitted.displaced);
  }
  if (ordinary_ < bounds_.ordinary) {
    admitted.admission = Admission::kAll;
    ++ordinary_;
  } else if (reserved_ < bounds_.reserved) {
    admitted.admission = Admission::kRenewals;
    ++reserved_;
  } else {
    return admitted;
  }
  newcomers_.remove(id);
  admitted_.emplace(id, admitted.admission);
  return admitted;
}

void Places::remove(Id id) {
  newcomers_.remove(id);
  silent_.remove(id);
  const auto found = admitted_.find(id);
  if (found == admitted_.end()) return;
  --(found->second == Admission::kAll ? ordinary_ : reserved_);
  admitted_.erase(found);
}

}  // namespace pawl::http
