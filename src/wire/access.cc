#include "wire/access.h"

namespace pawl::wire {

std::string_view to_text(Access access) {
  switch (access) {
    case Access::kNone:
      return "anyone";
    case Access::kUser:
      return "any user";
    case Access::kObserve:
      return "observe";
    case Access::kUse:
      return "use";
    case Access::kAdmin:
      return "admin";
    case Access::kBackup:
      return "backup";
  }
  return "";
}

}  // namespace pawl::wire
