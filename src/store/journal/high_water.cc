#include "store/journal/high_water.h"

#include "base/bytes.h"
#include "store/journal/format.h"
#include "store/journal/small_file.h"

namespace pawl::store::journal {
namespace {
constexpr std::string_view kHighWaterMagic = "PAWLHIGH";
}  // namespace

Result<void> write_high_water(Files& files, const std::string& directory,
                              const HighWater& high_water) {
  std::string body;
  put_u64(body, high_water.end);
  put_u64(body, high_water.sequence);
  put_u8(body, high_water.clean ? 1 : 0);
  return write_small_file(files, directory, kHighWaterFile, kHighWaterMagic, body);
}

Result<HighWater> read_high_water(Files& files, const std::string& directory) {
  const auto body = read_small_file(files, directory, kHighWaterFile, kHighWaterMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  HighWater high_water;
  high_water.end = in.u64();
  high_water.sequence = in.u64();
  high_water.clean = in.u8() != 0;
  if (!in.done()) return damage(path_in(directory, kHighWaterFile), 0, "makes no sense");
  return high_water;
}

}  // namespace pawl::store::journal
