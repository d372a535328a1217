#include "drill/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "drill/page_words.h"
#include "drill/picture_text.h"

namespace pawl::drill {
namespace {

constexpr double kMarkWidth = 17;
constexpr std::size_t kLabelRows = 3;
// More labels than this in one row of the picture are noise: then only what matters gets one.
constexpr std::size_t kLabelsMax = 12;

bool alike(const Write& left, const Write& right) {
  return left.actor == right.actor && left.token == right.token && left.fate == right.fate &&
         left.stale == right.stale;
}

bool matters(Fate fate) {
  return fate != Fate::kAdmitted && fate != Fate::kWithheld;
}

std::string words_for(const Cluster& cluster) {
  const std::string times = cluster.count > 1 ? fmt::format("{} × ", cluster.count) : "";
  return fmt::format("{}{} {}", times, cluster.first->token, fate_word(cluster.first->fate));
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
    if (!made.empty() && alike(*made.back().first, *write) && x - made.back().x < kMarkWidth) {
      made.back().count += 1;
    } else {
      made.push_back({write, 1, x});
    }
  }
  return made;
}

std::vector<FateLabel> fate_labels(const std::vector<Cluster>& clusters, double left,
                                   double right) {
  std::array<double, kLabelRows> free{};  // from where each row is empty
  std::vector<FateLabel> placed;
  for (const Cluster& cluster : clusters) {
    if (clusters.size() > kLabelsMax && !matters(cluster.first->fate)) continue;
    std::string words = words_for(cluster);
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

}  // namespace pawl::drill
