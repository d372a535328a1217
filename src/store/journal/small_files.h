// Small files that are replaced as a whole: eight letters of magic, a version, a body, and a
// checksum over all of it.
#pragma once

#include <string>
#include <string_view>

#include "store/file.h"

namespace pawl::store::journal {

inline constexpr std::size_t kMagicLength = 8;

// Replaces `name` in `directory`, durably: a temporary file, fdatasync, rename, fsync of the
// directory. After a crash there is the old file or the new one, whole. `magic` has kMagicLength
// letters.
Result<void> write_small_file(Files& files, const std::string& directory, std::string_view name,
                              std::string_view magic, std::string_view body);

// The body. An error names the file: missing, damaged, or written by a newer Pawl.
Result<std::string> read_small_file(Files& files, const std::string& directory,
                                    std::string_view name, std::string_view magic);

// All bytes of a file.
Result<std::string> read_file(Files& files, const std::string& path);

}  // namespace pawl::store::journal
