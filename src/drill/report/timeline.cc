#include "drill/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "drill/report/marks.h"
#include "drill/report/text.h"
#include "drill/report/time_scale.h"

namespace pawl::drill {
namespace {

// All measures are pixels of a picture 1000 wide. From top to bottom: the numbers of the summary,
// pawld's lane, a strip where two workers believe, a lane for each worker, the guard as a wall
// above the resource, labels, and the time.
constexpr double kWidth = 1000, kLeft = 132, kRight = 992;
constexpr double kPawldTop = 30, kPawldHeight = 26;
constexpr double kPawldFaults = 20;  // the strip for faults of pawld; only if there are any
constexpr double kWorkerHeight = 46, kBeliefEnd = 26;
constexpr double kWallGap = 24, kLabelRow = 14, kTickRoom = 64;
// A killed process stays down until it is restarted.
Moment end_of(const Fault& fault, const DrillRecord& record) {
  if (fault.until) return *fault.until;
  if (fault.kind != FaultKind::kKilled) return record.length;
  for (const Fault& other : record.faults) {
    if (other.kind == FaultKind::kRestarted && other.target == fault.target &&
        other.from >= fault.from) {
      return other.from;
    }
  }
  return record.length;
}

bool is_instant(const Fault& fault) {
  if (fault.until) return *fault.until <= fault.from;
  return fault.kind == FaultKind::kRestarted || fault.kind == FaultKind::kClockStepped ||
         fault.kind == FaultKind::kRestored;
}

// One row of the picture.
class Row {
 public:
  Row(const DrillRecord& record, const Summary& summary, const TimeScale& scale, std::size_t number)
      : record_(record),
        summary_(summary),
        scale_(scale),
        number_(number),
        workers_(workers_of(record)),
        clusters_(clusters(record.writes, scale)),
        labels_(fate_labels(clusters_, kLeft, kRight)) {}

  // What is drawn later lies on top, so labels come last.
  std::string svg() {
    axis();
    steps();
    pawld_lane();
    belief_overlaps();
    write_paths();
    for (const std::string& worker : workers_) worker_lane(worker);
    resource();
    marks();
    labels();
    return fmt::format(
        "<svg class='timeline' viewBox='0 0 {0:.0f} {1:.0f}' role='img' aria-labelledby='t{2} "
        "d{2}'>\n"
        "<title id='t{2}'>Who held the lock, who believed so, and the outcome of their writes, "
        "from "
        "{3} to {4}</title>\n<desc id='d{2}'>{5}</desc>\n{6}</svg>\n",
        kWidth, axis_y() + 22, number_, span_text(scale_.from()),
        span_text(std::min(scale_.to(), record_.length)), escaped(description()), out_);
  }

 private:
  [[nodiscard]] double lane_top(std::string_view worker) const {
    const auto it = std::find(workers_.begin(), workers_.end(), worker);
    return overlap_top() + 20 + static_cast<double>(it - workers_.begin()) * kWorkerHeight;
  }
  [[nodiscard]] double overlap_top() const {
    const bool pawld_faults =
        std::any_of(record_.faults.begin(), record_.faults.end(),
                    [](const Fault& fault) { return fault.target == "pawld"; });
    return kPawldTop + kPawldHeight + 6 + (pawld_faults ? kPawldFaults : 0);
  }
  [[nodiscard]] double wall_y() const {
    return overlap_top() + 20 + static_cast<double>(workers_.size()) * kWorkerHeight + kWallGap;
  }
  [[nodiscard]] double axis_y() const {
    std::size_t rows = 1;
    for (const FateLabel& label : labels_) rows = std::max(rows, label.row + 1);
    return wall_y() + 34 + static_cast<double>(rows) * kLabelRow;
  }
  // Colours are assigned in the order of the lanes.
  [[nodiscard]] std::string colour(std::string_view worker) const {
    const auto it = std::find(workers_.begin(), workers_.end(), worker);
    return fmt::format("worker{}", (it - workers_.begin()) % 6);
  }

  [[nodiscard]] std::string description() const {
    std::string words;
    for (const SummaryStep& step : summary_.steps) {
      if (scale_.shows(step.at)) words += step.text + " ";
    }
    return words;
  }

  void axis() {
    for (const Tick& tick : scale_.ticks(kTickRoom)) {
      out_ += fmt::format("<path class='grid' d='M{0:.1f} {1}V{2:.1f}'/>", tick.x, kPawldTop - 2,
                          axis_y());
      out_ += svg_text("tick", tick.x, axis_y() + 15, tick.label);
    }
    out_ += fmt::format("<path class='axis' d='M{} {:.1f}H{}'/>", kLeft, axis_y(), kRight);
  }

  void steps() {
    double free = 0;  // later numbers move to the right so that they do not overlap
    for (std::size_t i = 0; i < summary_.steps.size(); ++i) {
      if (!scale_.shows(summary_.steps[i].at)) continue;
      const double x = scale_.x(summary_.steps[i].at), at = std::max(x, free);
      free = at + 21;
      out_ += fmt::format(
          "<g class='step'>{}<path d='M{:.1f} 20L{:.1f} {}V{:.1f}'/>"
          "<circle cx='{:.1f}' cy='11' r='9.5'/>{}</g>\n",
          svg_title(summary_.steps[i].text), at, x, kPawldTop - 2, wall_y() + 28, at,
          svg_text("number", at, 15, std::to_string(i + 1)));
    }
  }

  void lane_label(double y, std::string_view name, std::string_view meaning) {
    out_ += svg_text("lane", kLeft - 10, y,
                     fitting({std::string(name), std::string(name.substr(0, 14)) + "…"}, kLeft));
    out_ += svg_text("what", kLeft - 10, y + 13, meaning);
  }

  void pawld_lane() {
    lane_label(kPawldTop + 11, "pawld", "who holds the lock");
    out_ += fmt::format("<path class='rail' d='M{} {}H{}'/>", kLeft, kPawldTop + kPawldHeight / 2,
                        kRight);
    for (const Ownership& own : record_.ownerships) ownership(own);
    faults("pawld", kPawldTop + kPawldHeight + 2, kPawldFaults - 2, kPawldTop + kPawldHeight + 15);
  }

  void ownership(const Ownership& own) {
    const Moment end = until_or_end(own.until, record_);
    if (!scale_.meets(own.from, end)) return;
    const double x = scale_.x(own.from), width = std::max(scale_.x(end) - x, 2.0);
    out_ += fmt::format(
        "<g class='own {}'>{}<rect x='{:.1f}' y='{}' width='{:.1f}' height='{}' rx='3'/>{}</g>\n",
        colour(own.worker),
        svg_title(fmt::format("pawld: {} held the lock with token {} from {} to {}{}", own.worker,
                              own.token, span_text(own.from), span_text(end),
                              own.ending.empty() ? "" : ", then: " + own.ending)),
        x, kPawldTop, width, kPawldHeight,
        svg_text("in", x + width / 2, kPawldTop + 17,
                 fitting({fmt::format("{} holds it: token {}", own.worker, own.token),
                          fmt::format("{}: token {}", own.worker, own.token),
                          fmt::format("{} {}", own.worker, own.token), std::to_string(own.token),
                          own.worker},
                         width)));
  }

  // Where two workers believe that they hold the lock, which people expect a lock to exclude.
  void belief_overlaps() {
    for (const auto& [from, to] : overlaps()) {
      if (!scale_.meets(from, to)) continue;
      const double x = scale_.x(from), width = std::max(scale_.x(to) - x, 2.0);
      out_ += fmt::format(
          "<g class='overlap'>{}<rect x='{:.1f}' y='{}' width='{:.1f}' height='{:.1f}'/>{}</g>\n",
          svg_title(fmt::format("For {} two workers believed that they held the lock",
                                span_text(to - from))),
          x, overlap_top(), width, wall_y() - kWallGap - overlap_top(),
          svg_text("in", x + width / 2, overlap_top() + 12,
                   fitting({"two believe they hold it: " + span_text(to - from),
                            "two believe: " + span_text(to - from), "two believe", "2"},
                           width)));
    }
  }

  // The spans in which more than one worker believed.
  [[nodiscard]] std::vector<std::pair<Moment, Moment>> overlaps() const {
    std::vector<std::pair<Moment, int>> edges;
    for (const Belief& belief : record_.beliefs) {
      edges.emplace_back(belief.from, +1);
      edges.emplace_back(until_or_end(belief.until, record_), -1);
    }
    std::sort(edges.begin(), edges.end());  // an end before a beginning at the same moment
    std::vector<std::pair<Moment, Moment>> spans;
    int believing = 0;
    for (const auto& [at, change] : edges) {
      if (believing == 1 && change > 0) spans.emplace_back(at, at);
      if (believing == 2 && change < 0) spans.back().second = at;
      believing += change;
    }
    std::erase_if(spans, [](const auto& span) { return span.first >= span.second; });
    return spans;
  }

  void worker_lane(const std::string& worker) {
    const double top = lane_top(worker);
    lane_label(top + 19, worker, "what it believes");
    out_ += fmt::format("<path class='rail' d='M{} {:.1f}H{}'/>", kLeft, top + 16, kRight);
    faults(worker, top + 1, kWorkerHeight - 2, top + 40);
    for (const Belief& belief : record_.beliefs) {
      if (belief.worker == worker) this->belief(belief, top);
    }
  }

  // An outline; dashed in the warning colour once pawld had counted the lease as over.
  void belief(const Belief& belief, double top) {
    const Moment end = until_or_end(belief.until, record_);
    Moment rightful = end;
    for (const Ownership& own : record_.ownerships) {
      if (own.worker == belief.worker && own.token == belief.token && own.until)
        rightful = std::min(end, *own.until);
    }
    outlined(belief, top, {belief.from, rightful}, "belief",
             {fmt::format("believes it holds the lock: {}", belief.token),
              fmt::format("believes: {}", belief.token), std::to_string(belief.token)});
    if (rightful < end) {
      outlined(belief, top, {std::max(rightful, belief.from), end}, "belief late",
               {fmt::format("wrongly, for {}", span_text(end - rightful)), "wrongly"});
    }
  }

  void outlined(const Belief& belief, double top, std::pair<Moment, Moment> span,
                std::string_view style, const std::vector<std::string>& labels) {
    const auto& [from, to] = span;
    if (!scale_.meets(from, to)) return;
    const double x = scale_.x(from), width = std::max(scale_.x(to) - x, 2.0);
    out_ += fmt::format(
        "<g class='{} {}'>{}<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='20' "
        "rx='3'/>{}</g>\n",
        style, colour(belief.worker),
        svg_title(fmt::format("{} believed that it held the lock with token {}, from {} to {}",
                              belief.worker, belief.token, span_text(from), span_text(to))),
        x, top + 6, width, svg_text("in", x + width / 2, top + 20, fitting(labels, width)));
  }

  void faults(const std::string& target, double top, double height, double label_y) {
    double free = 0;
    for (const Fault& fault : record_.faults) {
      const Moment end = is_instant(fault) ? fault.from : end_of(fault, record_);
      if (fault.target != target || !scale_.meets(fault.from, end)) continue;
      const double x = scale_.x(fault.from), width = std::max(scale_.x(end) - x, 3.0);
      const std::string word(fault_word(fault.kind)),
          lasted = word + " for " + span_text(end - fault.from);
      out_ += fmt::format(
          "<g class='fault'>{}<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>",
          svg_title(fmt::format("{} {}{}{}", target, is_instant(fault) ? word : lasted,
                                fault.note.empty() ? "" : ": ", fault.note)),
          x, top, width, height);
      // A label may be wider than its span, unless it would overlap the one before.
      const std::string label = is_instant(fault) || text_width(lasted) + 8 > width ? word : lasted;
      const double half = text_width(label) / 2;
      const double middle =
          2 * half + 12 > width ? x + width / 2 : x + half + 6;  // at its beginning, if it fits
      const double at = std::clamp(middle, kLeft + half, kRight - half);
      if (at - half >= free) {
        out_ += svg_text("name", at, label_y, label);
        free = at + half + 6;
      }
      out_ += "</g>\n";
    }
  }

  void resource() {
    const double y = wall_y();
    const bool guarded = record_.mode != "none",
               refuses = record_.mode == "enforce" || record_.mode == "canary";
    lane_label(y + 4, guarded ? "guard: " + record_.mode : "no guard", "the resource");
    out_ += fmt::format(
        "<rect class='resource' x='{0}' y='{1:.1f}' width='{2}' height='28'/>"
        "<path class='wall{3}' d='M{0} {1:.1f}H{4}'/>\n",
        kLeft, y, kRight - kLeft, refuses ? "" : " open", kRight);
  }

  // A line from the worker's lane to the wall, or through it.
  void write_paths() {
    for (const Cluster& cluster : clusters_) {
      if (cluster.first->fate == Fate::kWithheld) continue;
      out_ += fmt::format("<path class='path {}' d='M{:.1f} {:.1f}V{:.1f}'/>\n",
                          fate_class(cluster.first->fate), cluster.x,
                          lane_top(cluster.first->worker) + kBeliefEnd, mark_y(*cluster.first));
    }
  }

  void marks() {
    for (const Cluster& cluster : clusters_) {
      const Write& write = *cluster.first;
      out_ += fmt::format("<g class='write {}'>{}", fate_class(write.fate),
                          svg_title(tooltip(cluster)));
      if (write.fate != Fate::kWithheld) {
        out_ += fmt::format(
            "<path class='path' d='M{0:.1f} {1:.1f}V{2:.1f}'/><circle class='from' cx='{0:.1f}' "
            "cy='{3:.1f}' "
            "r='3.5'/>",
            cluster.x, wall_y() - kWallGap, mark_y(write), lane_top(write.worker) + kBeliefEnd);
      }
      out_ += mark(write.fate, cluster.x, mark_y(write)) + "</g>\n";
    }
  }

  [[nodiscard]] double mark_y(const Write& write) const {
    switch (write.fate) {
      case Fate::kWithheld:
        return lane_top(write.worker) + 16;
      case Fate::kRefused:
        return wall_y() - 11;
      case Fate::kAdmitted:
      case Fate::kLetThrough:
        return wall_y() + 14;
      case Fate::kUnknown:
        break;
    }
    return wall_y();
  }

  static std::string_view fate_class(Fate fate) {
    return fate == Fate::kLetThrough ? "bad" : fate == Fate::kRefused ? "stopped" : "plain";
  }

  static std::string tooltip(const Cluster& cluster) {
    const Write& write = *cluster.first;
    return fmt::format("{}{} wrote with token {}{} at {}: {}{}{}",
                       cluster.count > 1 ? fmt::format("{} writes: ", cluster.count) : "",
                       write.worker, write.token, write.stale ? " (stale)" : "",
                       span_text(write.sent), fate_word(write.fate),
                       write.detail.empty() ? "" : ": ", write.detail);
  }

  void labels() {
    for (const FateLabel& label : labels_) {
      out_ += svg_text(fmt::format("fate {}", fate_class(label.fate)), label.x,
                       wall_y() + 42 + static_cast<double>(label.row) * kLabelRow, label.words);
    }
  }

  const DrillRecord& record_;
  const Summary& summary_;
  const TimeScale scale_;
  const std::size_t number_;
  const std::vector<std::string> workers_;
  const std::vector<Cluster> clusters_;
  const std::vector<FateLabel> labels_;
  std::string out_;
};

// Wide enough for a token on most bars, and for the marks of stale writes side by side.
double wanted_width(const DrillRecord& record) {
  const auto stale = std::count_if(record.writes.begin(), record.writes.end(),
                                   [](const Write& write) { return write.stale; });
  return std::max(static_cast<double>(record.ownerships.size()) * 64,
                  static_cast<double>(stale) * 48);
}

// All times at which something visible begins or ends.
std::vector<Moment> events_of(const DrillRecord& record) {
  std::vector<Moment> events;
  const auto add = [&](Moment from, const std::optional<Moment>& until) {
    events.push_back(from);
    if (until) events.push_back(*until);
  };
  for (const Ownership& own : record.ownerships) add(own.from, own.until);
  for (const Belief& belief : record.beliefs) add(belief.from, belief.until);
  for (const Fault& fault : record.faults) add(fault.from, fault.until);
  for (const Write& write : record.writes) add(write.sent, {});
  return events;
}

}  // namespace

std::string timeline(const DrillRecord& record, const Summary& summary) {
  std::string out =
      "<svg class='defs' width='0' height='0' aria-hidden='true'><defs><pattern id='hatch' "
      "width='7' "
      "height='7' "
      "patternUnits='userSpaceOnUse' patternTransform='rotate(45)'><path class='hatch' d='M0 "
      "0V7'/></pattern>"
      "</defs></svg>\n";
  const std::vector<TimeScale> rows =
      time_rows(events_of(record), record.length, {kLeft, kRight, wanted_width(record)});
  for (std::size_t i = 0; i < rows.size(); ++i) out += Row(record, summary, rows[i], i).svg();
  return out;
}

}  // namespace pawl::drill
