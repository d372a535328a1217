// A checkpoint: every live record after one batch, sorted by key, in one file that is never changed
// once named.
//
//   Block 0 (4 KiB): u32 magic "PWLC", u32 crc of bytes 8…4095, u32 format version, u32 chain crc (of the
//     last record it covers), u64 incarnation, u64 sequence, u64 next segment (the first that it does not
//     cover), u64 records, u64 bytes in this file, u64 covered number; zeros.
//   Then pieces, each: u32 crc of the rest of the piece, u32 length, u64 index (0, 1, …), `length` bytes of
//     puts in the encoding of a batch (store.h), by key, each key once. The crc begins from that of
//     incarnation and sequence, so that no piece can stand in for one of another checkpoint.
//   The last piece has length 0 and ends the file.
//
// Valid: every checksum, index and count is right, and nothing is missing or left over. Anything
// else is damage: the file was complete and synced before it got its name.
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

class CheckpointWriter {
 public:
  // Writes to `path` (a temporary name). `header` as for SegmentWriter: records, bytes and crc are
  // filled in.
  static Result<CheckpointWriter> create(Files& files, const std::string& path,
                                         const CheckpointHeader& header);

  // Records come in order of key, each key once.
  void add(std::string_view key, std::string_view value);
  // Whether enough has been gathered for a piece; the caller then calls write_piece().
  [[nodiscard]] bool piece_is_full() const;
  Result<void> write_piece();
  // Writes what is left and the header, and syncs. The file may be renamed then.
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

class CheckpointReader {
 public:
  // Reads and checks the header.
  static Result<CheckpointReader> open(Files& files, const std::string& path);

  [[nodiscard]] const CheckpointHeader& header() const { return header_; }
  // The next piece's entries (valid until the next call); empty at the end, when everything was
  // found complete.
  Result<std::string_view> next_piece();
  // Tells the reader how many records the caller took from the piece, so that the end can check the
  // count.
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
