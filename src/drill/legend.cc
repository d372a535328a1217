// The legend of the picture.
#include <fmt/format.h>

#include <algorithm>

#include "drill/marks.h"
#include "drill/timeline.h"

namespace pawl::drill {
namespace {

std::string key(std::string_view shape, std::string_view words) {
  return fmt::format(
      "<li><svg width='34' height='22' viewBox='-17 -11 34 22' "
      "aria-hidden='true'>{}</svg>{}</li>\n",
      shape, words);
}

}  // namespace

std::string legend(const Record& record) {
  std::string out = "<ul class='legend'>\n";
  out += key("<g class='own actor0'><rect x='-16' y='-8' width='32' height='16' rx='3'/></g>",
             "owns the lock, as pawld counts it");
  out += key("<g class='belief actor0'><rect x='-15' y='-8' width='30' height='16' rx='3'/></g>",
             "believes that it holds the lock");
  out += key("<g class='belief late'><rect x='-15' y='-8' width='30' height='16' rx='3'/></g>",
             "believes it wrongly: pawld has counted it as over");
  out += key("<g class='fault'><rect x='-16' y='-10' width='32' height='20'/></g>",
             "frozen, cut off, killed: what the drill did");
  for (const auto& [fate, words] :
       {std::pair{Fate::kAdmitted, "a write that was admitted"},
        std::pair{Fate::kRefused, "a stale write, stopped by the guard"},
        std::pair{Fate::kLetThrough, "<b>a stale write that got through</b>"},
        std::pair{Fate::kWithheld, "not sent: the client asked its lease first"},
        std::pair{Fate::kUnknown, "no answer came"}}) {
    const bool occurs = std::any_of(record.writes.begin(), record.writes.end(),
                                    [&](const Write& write) { return write.fate == fate; });
    if (occurs) out += key(mark(fate, 0, 0), words);
  }
  return out + "</ul>\n";
}

}  // namespace pawl::drill
