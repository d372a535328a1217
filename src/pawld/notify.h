// Tells the service manager how far pawld has come: "READY=1", "STOPPING=1". Without one it does
// nothing.
#pragma once

#include <string_view>

namespace pawl::pawld {

void notify(std::string_view state);

}  // namespace pawl::pawld
