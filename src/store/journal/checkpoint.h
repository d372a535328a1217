// A checkpoint: every live record after one batch, sorted by key, in one file that is never changed
// once it has its name.
//
// Block 0 (4 KiB) is the header:
//
//   offset  0  u32  magic "PWLC"
//           4  u32  crc of bytes 8 to 4095
//           8  u32  format version
//          12  u32  chain crc: of the last record that it covers
//          16  u64  incarnation
//          24  u64  sequence
//          32  u64  next segment: the first that it does not cover
//          40  u64  records
//          48  u64  bytes in this file
//          56  u64  covered number
//          64       zeros
//
// Then come pieces:
//
//   offset  0  u32  crc of the rest of the piece
//           4  u32  length
//           8  u64  index: 0, 1, ...
//          16       `length` bytes of puts in the encoding of a batch (base/batch.h), sorted by
//                   key, each key once
//
// The crc of a piece is seeded with that of incarnation and sequence, so that a piece of another
// checkpoint is never valid. The last piece has length 0 and ends the file.
//
// Valid: every checksum, index and count is right, and nothing is missing or left over. Anything
// else is damage, because the file was complete and synced before it got its name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/file.h"
#include "store/store.h"

namespace pawl::store::journal {

struct CheckpointHeader {
  std::uint32_t magic = 0;
  std::uint32_t crc = 0;
  std::uint32_t version = 0;
  std::uint32_t chain_crc = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint64_t next_segment = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t covered = 0;
};
static_assert(sizeof(CheckpointHeader) == 64);

// Writes one checkpoint: add() and write_piece() in turn, then finish().
class CheckpointWriter {
 public:
  // Writes to `path`, a temporary name. Of `header`, magic, version, records, bytes and crc are
  // filled in.
  static Result<CheckpointWriter> create(Files& files, const std::string& path,
                                         const CheckpointHeader& header);

  // Call in ascending order of keys, each key once.
  void add(std::string_view key, std::string_view value);
  // Whether enough was added for a piece; the caller then calls write_piece().
  [[nodiscard]] bool piece_is_full() const;
  Result<void> write_piece();
  // Writes the rest and the header, and syncs. The file may then be renamed.
  Result<void> finish();

  [[nodiscard]] const CheckpointHeader& header() const { return header_; }

 private:
  CheckpointWriter(std::unique_ptr<File> file, const CheckpointHeader& header);

  std::unique_ptr<File> file_;
  CheckpointHeader header_;
  Batch entries_;
  std::string piece_;  // Piece header and entries, as written.
  std::uint64_t next_index_ = 0;
  std::uint64_t offset_ = 0;
};

// Reads and checks one checkpoint, piece by piece.
class CheckpointReader {
 public:
  // Opens the file, and reads and checks the header.
  static Result<CheckpointReader> open(Files& files, const std::string& path);

  [[nodiscard]] const CheckpointHeader& header() const { return header_; }
  // Returns the entries of the next piece, valid until the next call. Empty at the end, after
  // everything was found complete.
  Result<std::string_view> next_piece();
  // Adds to the number of records that the caller took from the pieces; it is checked at the end.
  void count(std::uint64_t records) { records_ += records; }

 private:
  CheckpointReader(std::unique_ptr<File> file, std::string path, const CheckpointHeader& header)
      : file_(std::move(file)), path_(std::move(path)), header_(header) {}
  [[nodiscard]] Result<std::string_view> read_exactly(std::size_t bytes, std::string& into);
  [[nodiscard]] Result<std::string_view> end_of_file();

  std::unique_ptr<File> file_;
  std::string path_;
  CheckpointHeader header_;
  std::string head_;
  std::string entries_;
  std::uint64_t offset_ = 4096;
  std::uint64_t next_index_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace pawl::store::journal
