// The output of the demo: lines for people, on a terminal with a picture of the present state below
// them; or one JSON object per event.
#pragma once

#include <memory>

#include "cli/console.h"
#include "drill/demo.h"

namespace pawl::cli {

// Which one depends on --json and on the terminal.
[[nodiscard]] std::unique_ptr<drill::DemoView> make_demo_view(Console& console);

}  // namespace pawl::cli
