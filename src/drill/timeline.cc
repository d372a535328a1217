#include "drill/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "drill/marks.h"
#include "drill/page_words.h"
#include "drill/picture_text.h"
#include "drill/time_scale.h"

namespace pawl::drill {
namespace {

// Everything in pixels of a picture 1000 wide. From top to bottom: the story's numbers, what pawld
// knew, who believed it twice, a lane for each actor, the guard as a wall before the resource,
// labels, and the time.
constexpr double kWidth = 1000, kLeft = 132, kRight = 992;
constexpr double kPawldTop = 30, kPawldHeight = 26;
constexpr double kPawldFaults = 20;  // the strip under pawld's lane, where anything was done to it
constexpr double kActorHeight = 46, kBeliefEnd = 26;
constexpr double kWallGap = 24, kLabelRow = 14, kTickRoom = 64;
// Until it was over: a killed process is gone until somebody starts it again.
Moment end_of(const Fault& fault, const Record& record) {
  if (fault.until) return *fault.until;
  if (fault.kind != FaultKind::kKilled) return record.length;
  for (const Fault& other : record.faults) {
    if (other.kind == FaultKind::kRestarted && other.whom == fault.whom &&
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
  Row(const Record& record, const Story& story, const TimeScale& scale, std::size_t number)
      : record_(record),
        story_(story),
        scale_(scale),
        number_(number),
        actors_(actors_of(record)),
        clusters_(clusters(record.writes, scale)),
        labels_(fate_labels(clusters_, kLeft, kRight)) {}

  // What is drawn later lies on top: nothing strikes through a label.
  std::string svg() {
    axis();
    steps();
    pawld_lane();
    twice();
    ways();
    for (const std::string& actor : actors_) actor_lane(actor);
    resource();
    marks();
    labels();
    return fmt::format(
        "<svg class='timeline' viewBox='0 0 {0:.0f} {1:.0f}' role='img' aria-labelledby='t{2} "
        "d{2}'>\n"
        "<title id='t{2}'>Who owned the lock, who believed it, and what became of their writes, "
        "from {3} to "
        "{4}</title>\n<desc id='d{2}'>{5}</desc>\n{6}</svg>\n",
        kWidth, axis_y() + 22, number_, span_text(scale_.from()),
        span_text(std::min(scale_.to(), record_.length)), escaped(description()), out_);
  }

 private:
  [[nodiscard]] double lane_top(std::string_view actor) const {
    const auto it = std::find(actors_.begin(), actors_.end(), actor);
    return twice_top() + 20 + static_cast<double>(it - actors_.begin()) * kActorHeight;
  }
  [[nodiscard]] double twice_top() const {
    const bool hurt = std::any_of(record_.faults.begin(), record_.faults.end(),
                                  [](const Fault& fault) { return fault.whom == "pawld"; });
    return kPawldTop + kPawldHeight + 6 + (hurt ? kPawldFaults : 0);
  }
  [[nodiscard]] double wall_y() const {
    return twice_top() + 20 + static_cast<double>(actors_.size()) * kActorHeight + kWallGap;
  }
  [[nodiscard]] double axis_y() const {
    std::size_t rows = 1;
    for (const FateLabel& label : labels_) rows = std::max(rows, label.row + 1);
    return wall_y() + 34 + static_cast<double>(rows) * kLabelRow;
  }
  // Colours are given out in the order of the lanes.
  [[nodiscard]] std::string colour(std::string_view actor) const {
    const auto it = std::find(actors_.begin(), actors_.end(), actor);
    return fmt::format("actor{}", (it - actors_.begin()) % 6);
  }

  [[nodiscard]] std::string description() const {
    std::string words;
    for (const Step& step : story_.steps) {
      if (scale_.shows(step.at)) words += step.text + " ";
    }
    return words;
  }

  void axis() {
    for (const Tick& tick : scale_.ticks(kTickRoom)) {
      out_ += fmt::format("<path class='grid' d='M{0:.1f} {1}V{2:.1f}'/>", tick.x, kPawldTop - 2,
                          axis_y());
      out_ += text("tick", tick.x, axis_y() + 15, tick.label);
    }
    out_ += fmt::format("<path class='axis' d='M{} {:.1f}H{}'/>", kLeft, axis_y(), kRight);
  }

  void steps() {
    double free = 0;  // numbers do not cover each other: later ones give way to the right
    for (std::size_t i = 0; i < story_.steps.size(); ++i) {
      if (!scale_.shows(story_.steps[i].at)) continue;
      const double x = scale_.x(story_.steps[i].at), at = std::max(x, free);
      free = at + 21;
      out_ += fmt::format(
          "<g class='step'>{}<path d='M{:.1f} 20L{:.1f} {}V{:.1f}'/>"
          "<circle cx='{:.1f}' cy='11' r='9.5'/>{}</g>\n",
          titled(story_.steps[i].text), at, x, kPawldTop - 2, wall_y() + 28, at,
          text("number", at, 15, std::to_string(i + 1)));
    }
  }

  void lane_label(double y, std::string_view name, std::string_view what) {
    out_ += text("lane", kLeft - 10, y,
                 fitting({std::string(name), std::string(name.substr(0, 14)) + "…"}, kLeft));
    out_ += text("what", kLeft - 10, y + 13, what);
  }

  void pawld_lane() {
    lane_label(kPawldTop + 11, "pawld", "who owns the lock");
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
        colour(own.actor),
        titled(fmt::format("pawld: {} owned the lock under token {} from {} to {}{}", own.actor,
                           own.token, span_text(own.from), span_text(end),
                           own.ending.empty() ? "" : ", then: " + own.ending)),
        x, kPawldTop, width, kPawldHeight,
        text("in", x + width / 2, kPawldTop + 17,
             fitting(
                 {fmt::format("{} owns it: token {}", own.actor, own.token),
                  fmt::format("{}: token {}", own.actor, own.token),
                  fmt::format("{} {}", own.actor, own.token), std::to_string(own.token), own.actor},
                 width)));
  }

  // Where two or more believe at once: the very thing that people think a lock excludes.
  void twice() {
    for (const auto& [from, to] : doubled()) {
      if (!scale_.meets(from, to)) continue;
      const double x = scale_.x(from), width = std::max(scale_.x(to) - x, 2.0);
      out_ += fmt::format(
          "<g class='twice'>{}<rect x='{:.1f}' y='{}' width='{:.1f}' height='{:.1f}'/>{}</g>\n",
          titled(fmt::format("For {} two believed that they held the lock", span_text(to - from))),
          x, twice_top(), width, wall_y() - kWallGap - twice_top(),
          text("in", x + width / 2, twice_top() + 12,
               fitting({"two believe that they hold it: " + span_text(to - from),
                        "two believe: " + span_text(to - from), "two believe", "2"},
                       width)));
    }
  }

  // The stretches in which more than one actor believed.
  [[nodiscard]] std::vector<std::pair<Moment, Moment>> doubled() const {
    std::vector<std::pair<Moment, int>> edges;
    for (const Belief& belief : record_.beliefs) {
      edges.emplace_back(belief.from, +1);
      edges.emplace_back(until_or_end(belief.until, record_), -1);
    }
    std::sort(edges.begin(), edges.end());  // an end before a beginning at the same moment
    std::vector<std::pair<Moment, Moment>> stretches;
    int believing = 0;
    for (const auto& [at, change] : edges) {
      if (believing == 1 && change > 0) stretches.emplace_back(at, at);
      if (believing == 2 && change < 0) stretches.back().second = at;
      believing += change;
    }
    std::erase_if(stretches, [](const auto& stretch) { return stretch.first >= stretch.second; });
    return stretches;
  }

  void actor_lane(const std::string& actor) {
    const double top = lane_top(actor);
    lane_label(top + 19, actor, "what it believes");
    out_ += fmt::format("<path class='rail' d='M{} {:.1f}H{}'/>", kLeft, top + 16, kRight);
    faults(actor, top + 1, kActorHeight - 2, top + 40);
    for (const Belief& belief : record_.beliefs) {
      if (belief.actor == actor) believed(belief, top);
    }
  }

  // Outlined; and broken, in the colour of warnings, from when pawld had counted it as over.
  void believed(const Belief& belief, double top) {
    const Moment end = until_or_end(belief.until, record_);
    Moment rightful = end;
    for (const Ownership& own : record_.ownerships) {
      if (own.actor == belief.actor && own.token == belief.token && own.until)
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
        style, colour(belief.actor),
        titled(fmt::format("{} believed that it held the lock under token {}, from {} to {}",
                           belief.actor, belief.token, span_text(from), span_text(to))),
        x, top + 6, width, text("in", x + width / 2, top + 20, fitting(labels, width)));
  }

  void faults(const std::string& whom, double top, double height, double label_y) {
    double free = 0;
    for (const Fault& fault : record_.faults) {
      const Moment end = is_instant(fault) ? fault.from : end_of(fault, record_);
      if (fault.whom != whom || !scale_.meets(fault.from, end)) continue;
      const double x = scale_.x(fault.from), width = std::max(scale_.x(end) - x, 3.0);
      const std::string word(fault_word(fault.kind)),
          lasted = word + " for " + span_text(end - fault.from);
      out_ += fmt::format(
          "<g class='fault'>{}<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>",
          titled(fmt::format("{} {}{}{}", whom, is_instant(fault) ? word : lasted,
                             fault.note.empty() ? "" : ": ", fault.note)),
          x, top, width, height);
      // A label may be wider than what it names, as long as it does not run into the one before.
      const std::string label = is_instant(fault) || text_width(lasted) + 8 > width ? word : lasted;
      const double half = text_width(label) / 2;
      const double middle =
          2 * half + 12 > width ? x + width / 2 : x + half + 6;  // at its beginning, if it fits
      const double at = std::clamp(middle, kLeft + half, kRight - half);
      if (at - half >= free) {
        out_ += text("name", at, label_y, label);
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

  // From the actor's lane to the wall, or through it.
  void ways() {
    for (const Cluster& cluster : clusters_) {
      if (cluster.first->fate == Fate::kWithheld) continue;
      out_ += fmt::format("<path class='way {}' d='M{:.1f} {:.1f}V{:.1f}'/>\n",
                          fate_class(cluster.first->fate), cluster.x,
                          lane_top(cluster.first->actor) + kBeliefEnd, mark_y(*cluster.first));
    }
  }

  void marks() {
    for (const Cluster& cluster : clusters_) {
      const Write& write = *cluster.first;
      out_ +=
          fmt::format("<g class='write {}'>{}", fate_class(write.fate), titled(account(cluster)));
      if (write.fate != Fate::kWithheld) {
        out_ += fmt::format(
            "<path class='way' d='M{0:.1f} {1:.1f}V{2:.1f}'/><circle class='from' cx='{0:.1f}' "
            "cy='{3:.1f}' "
            "r='3.5'/>",
            cluster.x, wall_y() - kWallGap, mark_y(write), lane_top(write.actor) + kBeliefEnd);
      }
      out_ += mark(write.fate, cluster.x, mark_y(write)) + "</g>\n";
    }
  }

  [[nodiscard]] double mark_y(const Write& write) const {
    switch (write.fate) {
      case Fate::kWithheld:
        return lane_top(write.actor) + 16;
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

  static std::string account(const Cluster& cluster) {
    const Write& write = *cluster.first;
    return fmt::format("{}{} wrote with token {}{} at {}: {}{}{}",
                       cluster.count > 1 ? fmt::format("{} writes: ", cluster.count) : "",
                       write.actor, write.token, write.stale ? " (stale)" : "",
                       span_text(write.sent), fate_word(write.fate),
                       write.detail.empty() ? "" : ": ", write.detail);
  }

  void labels() {
    for (const FateLabel& label : labels_) {
      out_ += text(fmt::format("fate {}", fate_class(label.fate)), label.x,
                   wall_y() + 42 + static_cast<double>(label.row) * kLabelRow, label.words);
    }
  }

  const Record& record_;
  const Story& story_;
  const TimeScale scale_;
  const std::size_t number_;
  const std::vector<std::string> actors_;
  const std::vector<Cluster> clusters_;
  const std::vector<FateLabel> labels_;
  std::string out_;
};

// So that a token fits on most bars, and the marks of stale writes stand beside each other.
double wanted_width(const Record& record) {
  const auto stale = std::count_if(record.writes.begin(), record.writes.end(),
                                   [](const Write& write) { return write.stale; });
  return std::max(static_cast<double>(record.ownerships.size()) * 64,
                  static_cast<double>(stale) * 48);
}

// Whatever can be seen in the picture to begin or end.
std::vector<Moment> events_of(const Record& record) {
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

std::string timeline(const Record& record, const Story& story) {
  std::string out =
      "<svg class='defs' width='0' height='0' aria-hidden='true'><defs><pattern id='hatch' "
      "width='7' "
      "height='7' "
      "patternUnits='userSpaceOnUse' patternTransform='rotate(45)'><path class='hatch' d='M0 "
      "0V7'/></pattern>"
      "</defs></svg>\n";
  const std::vector<TimeScale> rows =
      time_rows(events_of(record), record.length, {kLeft, kRight, wanted_width(record)});
  for (std::size_t i = 0; i < rows.size(); ++i) out += Row(record, story, rows[i], i).svg();
  return out;
}

}  // namespace pawl::drill
