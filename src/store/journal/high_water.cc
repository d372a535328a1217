#include "store/journal/high_water.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "store/journal/format.h"
#include "store/journal/small_files.h"

namespace pawl::store::journal {
namespace {

constexpr std::string_view kMagic = "PAWLHIGH";
constexpr std::uint32_t kVersion = 2;
constexpr unsigned kSlots = 2;

std::string encode_slot(const HighWater& high_water, std::uint64_t number) {
  std::string bytes(kMagic);
  put_u32(bytes, kVersion);
  put_u64(bytes, high_water.end);
  put_u64(bytes, high_water.sequence);
  put_u8(bytes, high_water.clean ? 1 : 0);
  put_u64(bytes, number);
  put_u32(bytes, crc32c(bytes));
  return bytes;
}

// Returns the version if `bytes` begins like a slot of any version.
std::optional<std::uint32_t> version_of(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.bytes(kMagic.size()) != kMagic) return {};
  const std::uint32_t version = in.u32();
  if (!in.ok()) return {};
  return version;
}

constexpr std::size_t kSummed = 37;

bool checksum_is_right(std::string_view bytes) {
  return ByteReader(bytes.substr(kSummed)).u32() == crc32c(bytes.substr(0, kSummed));
}

std::optional<StoredHighWater> decode_slot(std::string_view bytes, unsigned slot) {
  if (version_of(bytes) != kVersion || !checksum_is_right(bytes)) return {};
  ByteReader in(bytes.substr(kMagic.size() + sizeof kVersion));
  StoredHighWater stored;
  stored.value.end = in.u64();
  stored.value.sequence = in.u64();
  stored.value.clean = in.u8() != 0;
  stored.number = in.u64();
  stored.slot = slot;
  PAWL_ASSERT(in.ok());
  return stored;
}

Result<StoredHighWater> read_version_1(Files& files, const std::string& directory) {
  const auto body = read_small_file(files, directory, kHighWaterFile, kMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  StoredHighWater stored;
  stored.value.end = in.u64();
  stored.value.sequence = in.u64();
  stored.value.clean = in.u8() != 0;
  if (!in.done()) return damage(path_in(directory, kHighWaterFile), 0, "malformed content");
  return stored;
}

// The newer one of the slots that are valid.
std::optional<StoredHighWater> newest_slot(std::string_view bytes) {
  std::optional<StoredHighWater> newest;
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    const auto found = decode_slot(bytes.substr(slot * kBlock, kBlock), slot);
    if (found && (!newest || newest->number < found->number)) newest = found;
  }
  return newest;
}

}  // namespace

Result<void> create_high_water(Files& files, const std::string& directory,
                               const HighWater& high_water) {
  std::string bytes = encode_slot(high_water, 1);
  bytes.resize(kSlots * kBlock);
  return replace_file(files, directory, kHighWaterFile, bytes);
}

Result<StoredHighWater> read_high_water(Files& files, const std::string& directory) {
  const std::string path = path_in(directory, kHighWaterFile);
  const auto there = files.exists(path);
  if (!there) return there.error();
  if (!*there) return missing_file(path);
  const auto bytes = read_file(files, path);
  if (!bytes) return bytes.error();
  const auto version = version_of(*bytes);
  if (bytes->size() != kSlots * kBlock) {
    if (version == kFormatVersion) return read_version_1(files, directory);
    if (version && *version > kVersion) return newer_format(path, *version, kVersion);
    return damage(path, bytes->size(),
                  "has " + std::to_string(bytes->size()) + " bytes, should have " +
                      std::to_string(kSlots * kBlock));
  }
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    const std::string_view block = std::string_view(*bytes).substr(slot * kBlock, kBlock);
    if (version_of(block) > kVersion && checksum_is_right(block))
      return newer_format(path, *version_of(block), kVersion);
  }
  if (const auto newest = newest_slot(*bytes)) return *newest;
  if (version && *version > kVersion) return newer_format(path, *version, kVersion);
  return damage(path, 0, "neither of its two slots is valid");
}

Result<HighWaterFile> HighWaterFile::open(Files& files, const std::string& directory,
                                          const StoredHighWater& stored) {
  StoredHighWater present = stored;
  if (!present.slot) {
    if (auto created = create_high_water(files, directory, stored.value); !created)
      return created.error();
    present = StoredHighWater{stored.value, 1, 0};
  }
  auto file = files.open_durable(path_in(directory, kHighWaterFile));
  if (!file) return file.error();
  HighWaterFile opened(std::move(*file), present);
  // The same bytes in the same place: if they are on the disk already, a torn write changes
  // nothing.
  for (const unsigned slot : {*present.slot, (*present.slot + 1) % kSlots}) {
    if (auto written = opened.write_slot(slot, present.value, present.number); !written)
      return written.error();
  }
  return opened;
}

Result<void> HighWaterFile::write(const HighWater& high_water) {
  unsigned other = (slot_ + 1) % kSlots;
  if (auto written = write_slot(other, high_water, ++number_); !written) return written;
  std::swap(slot_, other);
  // The value counts from here on; the second copy protects it from damage.
  const auto copied = write_slot(other, high_water, number_);
  if (!copied && copied.error().code == Code::kUnavailable) return {};
  return copied;
}

Result<void> HighWaterFile::write_slot(unsigned slot, const HighWater& high_water,
                                       std::uint64_t number) {
  PAWL_ASSERT(slot < kSlots && number > 0);
  const std::string bytes = encode_slot(high_water, number);
  char* block = buffer_.reserve(kBlock);
  std::fill(block, block + kBlock, '\0');
  std::copy(bytes.begin(), bytes.end(), block);
  return file_->write(slot * kBlock, {block, kBlock});
}

}  // namespace pawl::store::journal
