// The small files of a journal directory. Each is replaced as a whole:
//
//   8 letters of magic, u32 format version, body, u32 crc of everything before it
//
//   store.meta   u64 incarnation, u64 segment bytes      which store this is
//   machine      text mark                               the machine that used the store last
//
// (backup.meta of a backup has the same form: backup.h.) All integers are little-endian; a text is
// a u16 length and the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"
#include "store/file.h"

namespace pawl::store::journal {

inline constexpr std::size_t kMagicLength = 8;

// Replaces `name` in `directory`, durably: temporary file, fdatasync, rename, fsync of the
// directory. After a crash the complete old file or the complete new one is there.
Result<void> replace_file(Files& files, const std::string& directory, std::string_view name,
                          std::string_view bytes);

// Replaces a small file in this way. `magic` has kMagicLength letters.
Result<void> write_small_file(Files& files, const std::string& directory, std::string_view name,
                              std::string_view magic, std::string_view body);

// Returns the body. An error names the file: missing, damaged, or written by a newer Pawl.
Result<std::string> read_small_file(Files& files, const std::string& directory,
                                    std::string_view name, std::string_view magic);

// kInvalid: a file that a store must have is missing.
[[nodiscard]] Error missing_file(const std::string& path);

// Returns all bytes of a file.
Result<std::string> read_file(Files& files, const std::string& path);

// --- store.meta ----------------------------------------------------------------------------------

// Which store this is: written once, when the store is created, and never changed.
struct Identity {
  Incarnation incarnation;          // Random; a restored store gets a new one.
  std::uint64_t segment_bytes = 0;  // Of every segment, except one made for an oversized batch.
};

// `name` is kIdentityFile or, until the rest of the store is complete, kCreatingFile or
// kRestoringFile.
Result<void> write_identity(Files& files, const std::string& directory, std::string_view name,
                            const Identity& identity);
Result<Identity> read_identity(Files& files, const std::string& directory);

// --- machine -------------------------------------------------------------------------------------

// The mark of the machine that used the store last; nothing if none was ever written. If a data
// directory is copied to another machine and both copies go on, tokens are issued twice (hard case
// 43); the program that opens the store compares the mark.
Result<std::optional<std::string>> read_machine_mark(Files& files, const std::string& directory);
// `mark` is any text that tells machines apart. It must reveal nothing about the machine, because
// it is copied with the directory.
Result<void> write_machine_mark(Files& files, const std::string& directory,
                                const std::string& mark);

}  // namespace pawl::store::journal
