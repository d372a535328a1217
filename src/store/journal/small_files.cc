#include "store/journal/small_files.h"

#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mutants.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

constexpr std::string_view kIdentityMagic = "PAWLSTOR";
constexpr std::string_view kMachineMagic = "PAWLMACH";

Error malformed(const std::string& directory, std::string_view name) {
  return damage(path_in(directory, name), 0, "malformed content");
}

}  // namespace

Result<void> replace_file(Files& files, const std::string& directory, std::string_view name,
                          std::string_view bytes) {
  PAWL_ASSERT(is_pawl_file(name));  // Else classify() would refuse the directory.
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

Result<void> write_small_file(Files& files, const std::string& directory, std::string_view name,
                              std::string_view magic, std::string_view body) {
  PAWL_ASSERT(magic.size() == kMagicLength);
  std::string bytes(magic);
  put_u32(bytes, kFormatVersion);
  bytes.append(body);
  put_u32(bytes, crc32c(bytes));
  return replace_file(files, directory, name, bytes);
}

Error missing_file(const std::string& path) {
  return Error{Code::kInvalid, path + ": missing, although the store is not new"};
}

Result<std::string> read_small_file(Files& files, const std::string& directory,
                                    std::string_view name, std::string_view magic) {
  PAWL_ASSERT(magic.size() == kMagicLength);
  const std::string path = path_in(directory, name);
  const auto there = files.exists(path);
  if (!there) return there.error();
  if (!*there) return missing_file(path);
  const auto bytes = read_file(files, path);
  if (!bytes) return bytes.error();

  ByteReader in(*bytes);
  if (in.bytes(kMagicLength) != magic)
    return damage(path, 0, "not a file of this kind (wrong magic)");
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

// --- store.meta ----------------------------------------------------------------------------------

Result<void> write_identity(Files& files, const std::string& directory, std::string_view name,
                            const Identity& identity) {
  PAWL_ASSERT(name == kIdentityFile || name == kCreatingFile || name == kRestoringFile);
  PAWL_ASSERT(identity.segment_bytes >= kSegmentBytesMin && identity.segment_bytes % kBlock == 0);
  std::string body;
  put_u64(body, identity.incarnation.value);
  put_u64(body, identity.segment_bytes);
  return write_small_file(files, directory, name, kIdentityMagic, body);
}

Result<Identity> read_identity(Files& files, const std::string& directory) {
  const auto body = read_small_file(files, directory, kIdentityFile, kIdentityMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  Identity identity;
  identity.incarnation.value = in.u64();
  identity.segment_bytes = in.u64();
  if (!in.done() || identity.segment_bytes < kSegmentBytesMin ||
      identity.segment_bytes % kBlock != 0) {
    return malformed(directory, kIdentityFile);
  }
  return identity;
}

// --- machine -------------------------------------------------------------------------------------

Result<std::optional<std::string>> read_machine_mark(Files& files, const std::string& directory) {
  const auto there = files.exists(path_in(directory, kMachineFile));
  if (!there) return there.error();
  if (!*there) return std::optional<std::string>();
  const auto body = read_small_file(files, directory, kMachineFile, kMachineMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  std::string mark(in.text());
  if (!in.done()) return malformed(directory, kMachineFile);
  return std::optional(std::move(mark));
}

Result<void> write_machine_mark(Files& files, const std::string& directory,
                                const std::string& mark) {
  std::string body;
  put_text(body, mark);
  return write_small_file(files, directory, kMachineFile, kMachineMagic, body);
}

}  // namespace pawl::store::journal
