// docs/reference/metrics.md, from the exposition itself: whatever a scrape tells is on the page, in its own words.
#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/metrics.h"

namespace pawl::server {
namespace {

constexpr std::string_view kIntroduction =
    R"(<!-- Rendered by pawl_metrics_page from what pawld tells. Change src/server/metrics.cc instead. -->
# Metrics

`GET /metrics` on the HTTP port, in the text format of Prometheus. Where pawld has users it needs the role *observe*:
[how to scrape it](../how-to/run-pawld.md#scrape-it). Counters begin at zero when pawld starts. A scrape takes a copy of the figures
from the thread that grants locks, and renders it elsewhere. No metric has the names of locks in its labels.

Recording rules for the names that textbooks use (`lock_acquire_success_total`, `lock_acquire_latency_ms` …) and alerts worth having are in
`deploy/prometheus/pawl.rules.yml`.

| metric | type | labels | what it is |
|---|---|---|---|
)";

struct Row {
  std::string name, type, help;
  std::vector<std::string> labels;
};

// `pawl_x{a="1",b="2"} 3`: adds a and b, but not the bounds of buckets. No value of ours holds a comma or a brace.
void add_labels(std::vector<std::string>& labels, std::string_view sample) {
  const std::size_t open = sample.find('{');
  if (open == std::string_view::npos) return;
  std::istringstream pairs{std::string(sample.substr(open + 1, sample.find('}') - open - 1))};
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const std::string name = pair.substr(0, pair.find('='));
    if (name != "le" && std::find(labels.begin(), labels.end(), name) == labels.end()) labels.push_back(name);
  }
}

std::vector<Row> rows_of(const std::string& exposition) {
  constexpr std::string_view kHelp = "# HELP ", kType = "# TYPE ";
  std::vector<Row> rows;
  std::istringstream lines(exposition);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kHelp)) {
      const std::size_t space = line.find(' ', kHelp.size());
      rows.push_back({line.substr(kHelp.size(), space - kHelp.size()), "", line.substr(space + 1), {}});
    } else if (line.starts_with(kType)) {
      rows.back().type = line.substr(line.rfind(' ') + 1);
    } else {
      add_labels(rows.back().labels, line);
    }
  }
  return rows;
}

// At least one sample of every family, so that its labels are known.
Readings something() {
  Readings readings;
  for (auto& command : readings.telemetry.commands) command.ok = 1;
  return readings;
}

}  // namespace

std::string metrics_page() {
  std::string out(kIntroduction);
  for (const Row& row : rows_of(metrics_text(something(), {}))) {
    out.append("| `").append(row.name).append("` | ").append(row.type).append(" | ");
    const char* comma = "";
    for (const std::string& label : row.labels) {
      out.append(comma).append("`").append(label).append("`");
      comma = ", ";
    }
    out.append(" | ").append(row.help).append(" |\n");
  }
  return out;
}

}  // namespace pawl::server
