// The picture of a drill: who owned the lock as pawld counts it, who believed it, what was done to
// them, and what became of their writes. Inline SVG; colours come from the page's style
// (page_style.cc), shapes tell the same without colour.
#pragma once

#include <string>

#include "drill/record.h"
#include "drill/story.h"

namespace pawl::drill {

// One <svg> per row, and the story's steps as numbers in it.
[[nodiscard]] std::string timeline(const Record& record, const Story& story);

// What the shapes mean; only those that occur.
[[nodiscard]] std::string legend(const Record& record);

}  // namespace pawl::drill
