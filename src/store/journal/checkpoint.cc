#include "store/journal/checkpoint.h"

#include <array>
#include <cstring>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mutants.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint32_t kCheckpointMagic = 0x434c5750;  // "PWLC"
constexpr std::size_t kHeaderCrcEnd = 8;  // Magic and crc are not part of the checksum.
constexpr std::size_t kPieceBytes = 256 * 1024;

struct PieceHeader {
  std::uint32_t crc = 0;
  std::uint32_t length = 0;
  std::uint64_t index = 0;
};
static_assert(sizeof(PieceHeader) == 16);

std::uint32_t piece_seed(const CheckpointHeader& header) {
  std::string text;
  put_u64(text, header.incarnation);
  put_u64(text, header.sequence);
  return crc32c(text);
}

// Over everything of the piece but the crc itself.
std::uint32_t piece_crc(const CheckpointHeader& header, std::string_view piece_head,
                        std::string_view entries) {
  const std::uint32_t head =
      crc32c(piece_head.substr(sizeof(PieceHeader::crc)), piece_seed(header));
  return crc32c(entries, head);
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::create(Files& files, const std::string& path,
                                                  const CheckpointHeader& header) {
  auto file = files.create(path);
  if (!file) return file.error();
  return CheckpointWriter(std::move(*file), header);
}

CheckpointWriter::CheckpointWriter(std::unique_ptr<File> file, const CheckpointHeader& header)
    : file_(std::move(file)), header_(header), offset_(kBlock) {
  header_.magic = kCheckpointMagic;
  header_.version = kFormatVersion;
  header_.records = 0;
}

bool CheckpointWriter::piece_is_full() const {
  return entries_.bytes().size() >= kPieceBytes;
}

void CheckpointWriter::add(std::string_view key, std::string_view value) {
  entries_.put(key, value);
  header_.records += 1;
}

Result<void> CheckpointWriter::write_piece() {
  PieceHeader head;
  PAWL_ASSERT(entries_.bytes().size() <= UINT32_MAX);
  head.length = static_cast<std::uint32_t>(entries_.bytes().size());
  head.index = next_index_++;
  piece_.assign(sizeof head, '\0');
  std::memcpy(piece_.data(), &head, sizeof head);
  head.crc = piece_crc(header_, piece_, entries_.bytes());
  std::memcpy(piece_.data(), &head, sizeof head);
  piece_.append(entries_.bytes());
  entries_.clear();
  if (auto written = file_->write(offset_, piece_); !written) return written;
  offset_ += piece_.size();
  return {};
}

Result<void> CheckpointWriter::finish() {
  if (!entries_.empty()) {
    if (auto written = write_piece(); !written) return written;
  }
  if (auto ended = write_piece(); !ended) return ended;  // An empty piece ends the file.
  PAWL_ASSERT(entries_.empty() && offset_ >= kBlock + sizeof(PieceHeader));
  header_.bytes = offset_;
  std::array<char, kBlock> block{};
  std::memcpy(block.data(), &header_, sizeof header_);
  header_.crc = crc32c({block.data() + kHeaderCrcEnd, kBlock - kHeaderCrcEnd});
  std::memcpy(block.data(), &header_, sizeof header_);
  if (auto written = file_->write(0, {block.data(), block.size()}); !written) return written;
  if (PAWL_MUTANT(checkpoint_not_synced)) return {};
  return file_->sync();
}

Result<CheckpointReader> CheckpointReader::open(Files& files, const std::string& path) {
  auto file = files.open_read(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  std::array<char, kBlock> block{};
  const auto got = (*file)->read(0, block);
  if (!got) return got.error();
  if (*got < kBlock) return damage(path, *got, "cut short");
  CheckpointHeader header;
  std::memcpy(&header, block.data(), sizeof header);
  if (header.magic != kCheckpointMagic) return damage(path, 0, "not a checkpoint (wrong magic)");
  if (header.crc != crc32c({block.data() + kHeaderCrcEnd, kBlock - kHeaderCrcEnd})) {
    return damage(path, 0, "the header's checksum is wrong");
  }
  if (header.version > kFormatVersion) return newer_format(path, header.version);
  if (header.version != kFormatVersion)
    return damage(path, 0, "of a format that this Pawl cannot read");
  if (header.bytes != *size) {
    return damage(
        path, *size,
        "has " + std::to_string(*size) + " bytes, should have " + std::to_string(header.bytes));
  }
  return CheckpointReader(std::move(*file), path, header);
}

Result<std::string_view> CheckpointReader::read_exactly(std::size_t bytes, std::string& into) {
  PAWL_ASSERT(offset_ <= header_.bytes);
  if (bytes > header_.bytes - offset_)
    return damage(path_, offset_, "a piece reaches past the end of the file");
  into.resize(bytes);
  const auto got = file_->read(offset_, into);
  if (!got) return got.error();
  if (*got != bytes) return damage(path_, offset_ + *got, "cut short");
  return std::string_view(into);
}

Result<std::string_view> CheckpointReader::end_of_file() {
  if (offset_ != header_.bytes) return damage(path_, offset_, "ends before its last byte");
  if (records_ != header_.records) {
    return damage(path_, offset_,
                  "holds " + std::to_string(records_) + " records, should hold " +
                      std::to_string(header_.records));
  }
  return std::string_view();
}

Result<std::string_view> CheckpointReader::next_piece() {
  const std::uint64_t begin = offset_;
  const auto head_bytes = read_exactly(sizeof(PieceHeader), head_);
  if (!head_bytes) return head_bytes;
  PieceHeader head;
  std::memcpy(&head, head_bytes->data(), sizeof head);
  offset_ += sizeof head;
  const auto entries = read_exactly(head.length, entries_);
  if (!entries) return entries;
  offset_ += head.length;
  if (head.crc != piece_crc(header_, *head_bytes, *entries))
    return damage(path_, begin, "the checksum is wrong");
  if (head.index != next_index_++) return damage(path_, begin, "a piece is out of order");
  if (head.length == 0) return end_of_file();
  return entries;
}

}  // namespace pawl::store::journal
