// The marks of writes: a shape for each fate, the same in the picture and in its legend; and the
// writes that are too close to be told apart drawn as one, with their number.
#pragma once

#include <string>
#include <vector>

#include "drill/record.h"
#include "drill/time_scale.h"

namespace pawl::drill {

// Centred there; about 16 pixels across.
[[nodiscard]] std::string mark(Fate fate, double x, double y);

// Writes of one actor, under one token, with one fate, that lie within a mark's width of each
// other.
struct Cluster {
  const Write* first = nullptr;
  std::size_t count = 0;
  double x = 0;
};
// Those of the writes that this row shows, from left to right.
[[nodiscard]] std::vector<Cluster> clusters(const std::vector<Write>& writes,
                                            const TimeScale& scale);

// What is written under the resource: the token and its fate.
struct FateLabel {
  std::string words;
  Fate fate{};
  double x = 0;  // its middle
  std::size_t row = 0;
};
// In as many rows as it takes for them not to touch. Where there is no place for all, stale writes
// come first; what stays without a label is told by its shape.
[[nodiscard]] std::vector<FateLabel> fate_labels(const std::vector<Cluster>& clusters, double left,
                                                 double right);

}  // namespace pawl::drill
