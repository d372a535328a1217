// Histories as text, so that any harness with one clock can be judged by the checker: one JSON
// object a line, its "kind" first. docs/explanation/testing.md has the format for programs that
// write it.
//
//   std::ofstream("run.jsonl") << to_json_lines(history);
//   const Result<History> read = history_from_json_lines(text);      // an error names the line
#pragma once

#include <string>
#include <string_view>

#include "pawl/result.h"
#include "sim/history.h"

namespace pawl::sim {

[[nodiscard]] std::string to_json_lines(const History& history);

// What is left out has its default: an answer that is not there never came. A word that is not
// known is an error, and so is anything that a record of its kind cannot be without.
[[nodiscard]] Result<History> history_from_json_lines(std::string_view text);

}  // namespace pawl::sim
