// A drill as one HTML file that a person can read at a glance, and attach to a change request.
//
// The verdict and its figures, the story in sentences, the picture of who owned the lock and who
// believed it, what happened line by line, and what was drilled against what. Nothing is loaded
// from anywhere and nothing is executed: a content security policy inside the page forbids both.
// Light or dark as the reader prefers; prints on paper.
#pragma once

#include <string>

#include "drill/record.h"

namespace pawl::drill {

// Whatever the record's texts hold is shown as text.
[[nodiscard]] std::string html(const Record& record);

}  // namespace pawl::drill
