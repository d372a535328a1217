#include "http/places.h"

namespace pawl::http {

std::optional<Places::Id> Places::add(Id id, Nanos now) {
  const auto displaced = newcomers_.add(id, now);
  if (displaced) forget_bytes(*displaced);
  return displaced;
}

void Places::forget_bytes(Id id) {
  const auto found = newcomer_bytes_.find(id);
  if (found == newcomer_bytes_.end()) return;
  bytes_ -= found->second;
  newcomer_bytes_.erase(found);
}

std::vector<Places::Id> Places::set_bytes(Id id, std::size_t bytes) {
  std::vector<Id> displaced;
  if (!newcomers_.contains(id)) return displaced;
  forget_bytes(id);
  if (bytes == 0) return displaced;
  newcomer_bytes_.emplace(id, bytes);
  bytes_ += bytes;
  while (bytes_ > bounds_.newcomer_bytes) {
    const auto gone = newcomers_.displace();
    if (!gone) break;
    forget_bytes(*gone);
    displaced.push_back(*gone);
  }
  return displaced;
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
  forget_bytes(id);
  admitted_.emplace(id, admitted.admission);
  return admitted;
}

void Places::remove(Id id) {
  newcomers_.remove(id);
  forget_bytes(id);
  silent_.remove(id);
  const auto found = admitted_.find(id);
  if (found == admitted_.end()) return;
  --(found->second == Admission::kAll ? ordinary_ : reserved_);
  admitted_.erase(found);
}

}  // namespace pawl::http
