// How the demo is shown: lines for people, on a terminal with a picture of how things are below
// them; or an object a line.
#pragma once

#include <memory>

#include "cli/console.h"
#include "drill/demo.h"

namespace pawl::cli {

// As the console wants it: JSON, a terminal that can be drawn on, or plain lines.
[[nodiscard]] std::unique_ptr<drill::DemoView> make_demo_view(Console& console);

}  // namespace pawl::cli
