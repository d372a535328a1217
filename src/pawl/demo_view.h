// How the demo is shown: lines for people, on a terminal with a picture of how things are below them; or an object a line.
#pragma once

#include <memory>

#include "drill/demo.h"
#include "pawl/console.h"

namespace pawl::cli {

// As the console wants it: JSON, a terminal that can be drawn on, or plain lines.
[[nodiscard]] std::unique_ptr<drill::DemoView> make_demo_view(Console& console);

// In lines no longer than `width`, each behind so many spaces, the first behind `head` (of that many columns) instead.
[[nodiscard]] std::string wrapped(std::string_view head, std::string_view text, std::size_t indent,
                                  std::size_t width);

}  // namespace pawl::cli
