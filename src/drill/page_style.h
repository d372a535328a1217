// The looks of a drill's page.
#pragma once

#include <string_view>

namespace pawl::drill {

// What stands between <style> and </style>. Every text has a contrast of 4.5 to 1 or more on what
// it stands on, light and dark.
extern const std::string_view kPageStyle;

}  // namespace pawl::drill
