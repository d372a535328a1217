#include "drill/report/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "drill/report/text.h"

namespace pawl::drill {
namespace {

constexpr double kMarkWidth = 17;
constexpr std::size_t kLabelRows = 3;
// With more writes than this in one row, only the noteworthy ones get a label.
constexpr std::size_t kLabelsMax = 12;

bool same_mark(const Write& left, const Write& right) {
  return left.worker == right.worker && left.token == right.token && left.fate == right.fate &&
         left.stale == right.stale;
}

bool is_noteworthy(Fate fate) {
  return fate != Fate::kAdmitted && fate != Fate::kWithheld;
}

std::string label_of(const Cluster& cluster) {
  const std::string times = cluster.count > 1 ? fmt::format("{} × ", cluster.count) : "";
  return fmt::format("{}{} {}", times, cluster.first->token, fate_word(cluster.first->fate));
}

std::string legend_entry(std::string_view shape, std::string_view words) {
  return fmt::format(
      "<li><svg width='34' height='22' viewBox='-17 -11 34 22' "
      "aria-hidden='true'>{}</svg>{}</li>\n",
      shape, words);
}

}  // namespace

std::string mark(Fate fate, double x, double y) {
  const std::string place = fmt::format("<g transform='translate({:.1f} {:.1f})' ", x, y);
  switch (fate) {
    case Fate::kAdmitted:  // a full circle with a tick
      return place + "class='admitted'><circle r='7.5'/><path d='M-3.6 .2-1 3 3.8-2.8'/></g>";
    case Fate::kRefused:  // a cross in an empty square
      return place +
             "class='refused'><rect x='-7.5' y='-7.5' width='15' height='15' rx='2'/>"
             "<path d='M-4-4 4 4M4-4-4 4'/></g>";
    case Fate::kLetThrough:  // a full triangle with an exclamation mark, larger than the rest
      return place +
             "class='through'><path class='sign' d='M0-10.5 11 9H-11Z'/>"
             "<path d='M0-4V3'/><circle cy='6' r='1.3'/></g>";
    case Fate::kWithheld:  // a broken circle with a bar: stop
      return place + "class='withheld'><circle r='7'/><path d='M-3.6 0H3.6'/></g>";
    case Fate::kUnknown:
      break;
  }
  return place + "class='unknown'><circle r='7.5'/><text y='4'>?</text></g>";
}

std::vector<Cluster> clusters(const std::vector<Write>& writes, const TimeScale& scale) {
  std::vector<const Write*> shown;
  for (const Write& write : writes) {
    if (scale.shows(write.sent)) shown.push_back(&write);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const Write* left, const Write* right) { return left->sent < right->sent; });
  std::vector<Cluster> made;
  for (const Write* write : shown) {
    const double x = scale.x(write->sent);
    if (!made.empty() && same_mark(*made.back().first, *write) && x - made.back().x < kMarkWidth) {
      made.back().count += 1;
    } else {
      made.push_back({write, 1, x});
    }
  }
  return made;
}

std::vector<FateLabel> fate_labels(const std::vector<Cluster>& clusters, double left,
                                   double right) {
  std::array<double, kLabelRows> free{};  // x from which each row is free
  std::vector<FateLabel> placed;
  for (const Cluster& cluster : clusters) {
    if (clusters.size() > kLabelsMax && !is_noteworthy(cluster.first->fate)) continue;
    std::string words = label_of(cluster);
    const double half = text_width(words) / 2;
    const double x = std::clamp(cluster.x, left + half, right - half);
    const auto row =
        std::find_if(free.begin(), free.end(), [&](double from) { return from <= x - half; });
    if (row == free.end()) continue;
    *row = x + half + 6;
    placed.push_back(
        {std::move(words), cluster.first->fate, x, static_cast<std::size_t>(row - free.begin())});
  }
  return placed;
}

std::string legend(const DrillRecord& record) {
  std::string out = "<ul class='legend'>\n";
  out += legend_entry(
      "<g class='own worker0'><rect x='-16' y='-8' width='32' height='16' rx='3'/></g>",
      "holds the lock, according to pawld");
  out += legend_entry(
      "<g class='belief worker0'><rect x='-15' y='-8' width='30' height='16' rx='3'/></g>",
      "believes that it holds the lock");
  out += legend_entry(
      "<g class='belief late'><rect x='-15' y='-8' width='30' height='16' rx='3'/></g>",
      "believes so wrongly: its lease is over");
  out += legend_entry("<g class='fault'><rect x='-16' y='-10' width='32' height='20'/></g>",
                      "what the drill did to it: frozen, cut off, killed");
  for (const auto& entry :
       {std::pair{Fate::kAdmitted, "a write that was admitted"},
        std::pair{Fate::kRefused, "a stale write that the guard refused"},
        std::pair{Fate::kLetThrough, "<b>a stale write that got through</b>"},
        std::pair{Fate::kWithheld, "not sent: the client checked its lease first"},
        std::pair{Fate::kUnknown, "no result arrived"}}) {
    const bool occurs = std::any_of(record.writes.begin(), record.writes.end(),
                                    [&](const Write& write) { return write.fate == entry.first; });
    if (occurs) out += legend_entry(mark(entry.first, 0, 0), entry.second);
  }
  return out + "</ul>\n";
}

}  // namespace pawl::drill
