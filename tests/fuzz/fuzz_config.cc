// A configuration file: refused with a message that names it, or understood; and what is
// understood, printed and read again, is the same.
#include <string>
#include <string_view>

#include "base/assert.h"
#include "pawld/options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::pawld;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Config config;
  const auto read = parse_config(text, "pawld.toml", config);
  if (!read) {
    PAWL_ASSERT(read.error().code == pawl::Code::kInvalid &&
                read.error().detail.starts_with("pawld.toml"));
    return 0;
  }
  const std::string printed = to_toml(config);
  Config again;
  PAWL_ASSERT(parse_config(printed, "printed.toml", again));
  PAWL_ASSERT(to_toml(again) == printed);
  return 0;
}
