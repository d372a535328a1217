#include "store/journal/small_file.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mutants.h"
#include "store/journal/format.h"

namespace pawl::store::journal {

Result<void> write_small_file(Files& files, const std::string& directory, std::string_view name,
                              std::string_view magic, std::string_view body) {
  PAWL_ASSERT(magic.size() == kMagicLength);
  std::string bytes(magic);
  put_u32(bytes, kFormatVersion);
  bytes.append(body);
  put_u32(bytes, crc32c(bytes));

  const std::string path = path_in(directory, name);
  const std::string unfinished = path + ".tmp";
  {
    auto file = files.create(unfinished);
    if (!file) return file.error();
    if (auto written = (*file)->write(0, bytes); !written) return written;
    if (auto synced = PAWL_MUTANT(small_file_not_synced) ? Result<void>{} : (*file)->sync();
        !synced)
      return synced;
  }
  if (auto renamed = files.rename(unfinished, path); !renamed) return renamed;
  if (PAWL_MUTANT(rename_not_synced)) return {};
  return files.sync_directory(directory);
}

Result<std::string> read_small_file(Files& files, const std::string& directory,
                                    std::string_view name, std::string_view magic) {
  const std::string path = path_in(directory, name);
  const auto there = files.exists(path);
  if (!there) return there.error();
  if (!*there) return Error{Code::kInvalid, path + ": missing, though the store is not new"};
  const auto bytes = read_file(files, path);
  if (!bytes) return bytes.error();

  ByteReader in(*bytes);
  if (in.bytes(kMagicLength) != magic)
    return damage(path, 0, "this is not what it should be (wrong magic)");
  const std::uint32_t version = in.u32();
  if (in.ok() && version > kFormatVersion) return newer_format(path, version);
  if (in.rest().size() < sizeof(std::uint32_t)) return damage(path, bytes->size(), "cut short");
  const std::string_view body = in.bytes(in.rest().size() - sizeof(std::uint32_t));
  const std::string_view summed(bytes->data(), bytes->size() - sizeof(std::uint32_t));
  if (in.u32() != crc32c(summed)) return damage(path, 0, "the checksum is wrong");
  return std::string(body);
}

Result<std::string> read_file(Files& files, const std::string& path) {
  auto file = files.open_read(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  std::string bytes(*size, '\0');
  const auto got = (*file)->read(0, bytes);
  if (!got) return got.error();
  bytes.resize(*got);
  return bytes;
}

}  // namespace pawl::store::journal
