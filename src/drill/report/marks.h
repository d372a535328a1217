// The marks of writes in the timeline, one shape per outcome, and the legend. Writes that would
// overlap are drawn as one mark with a count.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"
#include "drill/report/time_scale.h"

namespace pawl::drill {

// An SVG group centred at (x, y), about 16 pixels wide.
[[nodiscard]] std::string mark(Fate fate, double x, double y);

// Writes of one worker with the same token and outcome, less than the width of a mark apart.
struct Cluster {
  const Write* first = nullptr;
  std::size_t count = 0;
  double x = 0;
};
// The clusters of the writes that this row shows, from left to right.
[[nodiscard]] std::vector<Cluster> clusters(const std::vector<Write>& writes,
                                            const TimeScale& scale);

// The label under a mark: the token and the outcome.
struct FateLabel {
  std::string words;
  Fate fate{};
  double x = 0;  // its middle
  std::size_t row = 0;
};
// Placed in several rows so that they do not overlap. When there is not enough room, writes without
// a noteworthy outcome get no label.
[[nodiscard]] std::vector<FateLabel> fate_labels(const std::vector<Cluster>& clusters, double left,
                                                 double right);

// An HTML list of the shapes that occur in this record.
[[nodiscard]] std::string legend(const DrillRecord& record);

}  // namespace pawl::drill
