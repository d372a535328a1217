#include "store/journal/segment.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::store::journal {
namespace {

// The granularity of leftovers, and how much is overwritten by one write: each write costs a flush.
constexpr std::uint64_t kLeftoverStep = 64 * 1024;
constexpr std::uint64_t kLeftoverMax = 4 * 1024 * 1024;

constexpr std::uint64_t kSearchStep = 1024 * 1024;

Result<bool> record_is_valid(File& file, std::uint64_t offset, std::uint64_t stored,
                             std::uint64_t segment) {
  std::string bytes(stored, '\0');
  if (const auto got = file.read(offset, bytes); !got) return got.error();
  return decode_record(bytes, segment).has_value();
}

// Whether a valid record of this segment begins at any block: then the segment was begun, even if
// its header is not valid now. (Old records of a recycled file carry another segment id.)
Result<bool> holds_a_record(File& file, std::uint64_t segment, std::uint64_t file_bytes) {
  std::string piece(kSearchStep, '\0');
  for (std::uint64_t at = kBlock; at < file_bytes; at += kSearchStep) {
    const auto got = file.read(at, piece);
    if (!got) return got.error();
    for (std::uint64_t offset = 0; offset + kBlock <= *got; offset += kBlock) {
      const auto length = claimed_length(std::string_view(piece).substr(offset), segment);
      if (!length || stored_bytes(*length) > file_bytes - at - offset) continue;
      const auto valid = record_is_valid(file, at + offset, stored_bytes(*length), segment);
      if (!valid || *valid) return valid;
    }
  }
  return false;
}

bool all_zeros(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::vector<ByteRange> find_leftovers(std::string_view bytes, std::uint64_t from) {
  std::vector<ByteRange> leftovers;
  for (std::uint64_t at = from; at < bytes.size(); at += kLeftoverStep) {
    const std::string_view piece = bytes.substr(at, kLeftoverStep);
    if (all_zeros(piece)) continue;
    const bool adjacent =
        !leftovers.empty() && leftovers.back().offset + leftovers.back().bytes == at;
    if (adjacent && leftovers.back().bytes < kLeftoverMax) {
      leftovers.back().bytes += piece.size();
    } else {
      leftovers.push_back(ByteRange{at, piece.size()});
    }
  }
  return leftovers;
}

// Even for lack of space: a part of the bytes may be on the disk.
Error partly_written(const Error& error) {
  return Error{Code::kUnknown, error.detail};
}

Result<void> check_chain(const std::string& path, std::uint64_t offset, const BatchRecord& record,
                         const ChainPosition& chain) {
  if (record.header.sequence != chain.next_sequence) {
    return damage(path, offset,
                  "a gap: batch " + std::to_string(chain.next_sequence) +
                      " should be here, but batch " + std::to_string(record.header.sequence) +
                      " is");
  }
  if (record.header.previous_crc != chain.crc)
    return damage(path, offset, "does not continue the record before it");
  return {};
}

}  // namespace

Result<SegmentFacts> probe_segment(Files& files, const std::string& path, std::uint64_t segment,
                                   std::uint64_t expected_bytes) {
  auto file = files.open_read(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  SegmentFacts facts;
  facts.bytes = *size;
  std::array<char, kBlock> block{};
  if (const auto got = (*file)->read(0, block); !got) return got.error();
  const std::string_view header(block.data(), block.size());
  facts.header = decode_segment_header(header, segment);
  if (const auto version = newer_segment_format(header, segment))
    return newer_format(path, *version);
  const std::uint64_t due = facts.header ? facts.header->bytes : expected_bytes;
  if (due < 2 * kBlock || due % kBlock != 0) return damage(path, 0, "malformed segment size");
  if (*size < due || *size % kBlock != 0) {
    return damage(path, *size,
                  "cut short: a segment of " + std::to_string(due) + " bytes should be here");
  }
  if (facts.header) return facts;
  const auto begun = holds_a_record(**file, segment, *size);
  if (!begun) return begun.error();
  if (*begun) return damage(path, 0, "the segment's header is damaged");
  return facts;
}

Result<void> check_header(const std::string& path, const SegmentHeader& header,
                          Incarnation incarnation, const ChainPosition& chain) {
  if (header.incarnation != incarnation.value) return damage(path, 0, "belongs to another store");
  if (header.first_sequence != chain.next_sequence) {
    return damage(path, 0,
                  "a gap: begins with batch " + std::to_string(header.first_sequence) +
                      ", but the segment before it ends with batch " +
                      std::to_string(chain.next_sequence - 1));
  }
  if (header.previous_crc != chain.crc)
    return damage(path, 0, "does not continue the segment before it");
  return {};
}

Result<std::string_view> SegmentReader::read(const std::string& path, std::uint64_t bytes) {
  if (bytes > buffer_bytes_) {
    buffer_ = std::make_unique_for_overwrite<char[]>(bytes);
    buffer_bytes_ = bytes;
  }
  auto file = files_.open_read(path);
  if (!file) return file.error();
  const auto got = (*file)->read(0, {buffer_.get(), bytes});
  if (!got) return got.error();
  if (*got != bytes) return damage(path, *got, "cut short");
  return std::string_view(buffer_.get(), bytes);
}

Result<SegmentEnd> SegmentReader::replay(const std::string& path, const SegmentHeader& header,
                                         ChainPosition& chain, const OnRecord& on_record) {
  const auto bytes = read(path, header.bytes);
  if (!bytes) return bytes.error();
  PAWL_ASSERT(header.bytes >= kBlock && header.bytes % kBlock == 0);
  chain.crc = header.crc;
  SegmentEnd end;
  end.offset = kBlock;
  end.last = ByteRange{0, kBlock};
  while (const auto record = decode_record(bytes->substr(end.offset), header.segment)) {
    if (auto follows = check_chain(path, end.offset, *record, chain); !follows)
      return follows.error();
    if (auto taken = on_record(*record); !taken)
      return damage(path, end.offset, taken.error().detail);
    chain = ChainPosition{chain.next_sequence + 1, record->header.crc};
    end.last = ByteRange{end.offset, record->stored_bytes};
    end.offset += record->stored_bytes;
  }
  for (std::uint64_t later = end.offset + kBlock; later < bytes->size(); later += kBlock) {
    if (!PAWL_MUTANT(damage_taken_for_torn_tail) &&
        decode_record(bytes->substr(later), header.segment)) {
      return damage(path, end.offset,
                    "a damaged record; a good one follows at offset " + std::to_string(later));
    }
  }
  end.leftovers = find_leftovers(*bytes, end.offset);
  if (PAWL_MUTANT(torn_tail_refused) && !end.leftovers.empty())
    return damage(path, end.offset, "a torn record");
  return end;
}

void AlignedBuffer::Free::operator()(char* memory) const {
  std::free(memory);
}

char* AlignedBuffer::reserve(std::size_t bytes) {
  if (bytes > bytes_) {
    const std::size_t rounded = round_up_to_block(bytes + bytes / 2);
    memory_.reset(static_cast<char*>(std::aligned_alloc(kBlock, rounded)));
    if (memory_ == nullptr) throw std::bad_alloc();
    bytes_ = rounded;
  }
  return memory_.get();
}

Result<SegmentWriter> SegmentWriter::begin(std::unique_ptr<File> file, const SegmentHeader& header,
                                           AlignedBuffer& buffer, ChainPosition& chain) {
  PAWL_ASSERT(header.first_sequence == chain.next_sequence && header.previous_crc == chain.crc);
  char* block = buffer.reserve(kBlock);
  const std::uint32_t crc = encode_segment_header(header, block);
  if (auto written = file->write(0, {block, kBlock}); !written)
    return partly_written(written.error());
  chain.crc = crc;
  return SegmentWriter(std::move(file), header, kBlock);
}

SegmentWriter SegmentWriter::resume(std::unique_ptr<File> file, const SegmentHeader& header,
                                    std::uint64_t offset) {
  PAWL_ASSERT(offset >= kBlock && offset <= header.bytes && offset % kBlock == 0);
  return SegmentWriter(std::move(file), header, offset);
}

Result<void> SegmentWriter::append(std::string_view batch, std::uint64_t covered,
                                   AlignedBuffer& buffer, ChainPosition& chain) {
  PAWL_ASSERT(fits(batch.size()) && batch.size() <= UINT32_MAX);
  const std::size_t stored = stored_bytes(batch.size());
  char* bytes = buffer.reserve(stored);
  RecordHeader header;
  header.previous_crc = chain.crc;
  header.segment = segment_;
  header.sequence = chain.next_sequence;
  header.covered = covered;
  const std::uint32_t crc = encode_record(header, batch, bytes);
  if (auto written = file_->write(offset_, {bytes, stored}); !written)
    return partly_written(written.error());
  offset_ += stored;
  PAWL_ASSERT(offset_ <= bytes_);
  chain = ChainPosition{chain.next_sequence + 1, crc};
  return {};
}

}  // namespace pawl::store::journal
