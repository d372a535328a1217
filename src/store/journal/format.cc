#include "store/journal/format.h"

#include <charconv>
#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mutants.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint32_t kSegmentMagic = 0x534c5750;  // "PWLS"
constexpr std::uint32_t kRecordMagic = 0x524c5750;   // "PWLR"
constexpr std::size_t kCrcEnd = 8;                   // Magic and crc are not part of the checksum.
constexpr std::string_view kSegmentPrefix = "segment-";
constexpr std::string_view kSegmentSuffix = ".log";
constexpr std::string_view kCheckpointPrefix = "checkpoint-";
constexpr std::string_view kUnfinishedSuffix = ".tmp";

void write_crc(char* at, std::uint32_t crc) {
  std::memcpy(at + 4, &crc, sizeof crc);
}

std::optional<std::uint64_t> plain_number(std::string_view digits) {
  if (digits.empty() || (digits[0] == '0' && digits.size() > 1)) return {};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

}  // namespace

std::uint32_t encode_segment_header(SegmentHeader header, char* block) {
  header.magic = kSegmentMagic;
  header.version = kFormatVersion;
  std::memset(block, 0, kBlock);
  std::memcpy(block, &header, sizeof header);
  const std::uint32_t crc = crc32c({block + kCrcEnd, kBlock - kCrcEnd});
  write_crc(block, crc);
  return crc;
}

namespace {

// The header if everything except its version is right.
std::optional<SegmentHeader> intact_header(std::string_view block, std::uint64_t segment) {
  if (block.size() < kBlock) return {};
  SegmentHeader header;
  std::memcpy(&header, block.data(), sizeof header);
  if (header.magic != kSegmentMagic || header.segment != segment) return {};
  if (header.crc != crc32c(block.substr(kCrcEnd, kBlock - kCrcEnd))) return {};
  return header;
}

}  // namespace

std::optional<SegmentHeader> decode_segment_header(std::string_view block, std::uint64_t segment) {
  auto header = intact_header(block, segment);
  if (header && header->version != kFormatVersion) return {};
  return header;
}

std::optional<std::uint32_t> newer_segment_format(std::string_view block, std::uint64_t segment) {
  const auto header = intact_header(block, segment);
  if (!header || header->version <= kFormatVersion) return {};
  return header->version;
}

std::uint32_t encode_record(RecordHeader header, std::string_view batch, char* out) {
  PAWL_ASSERT(batch.size() <= UINT32_MAX);
  const std::size_t used = sizeof header + batch.size();
  const std::size_t stored = stored_bytes(batch.size());
  header.magic = kRecordMagic;
  header.length = static_cast<std::uint32_t>(batch.size());
  std::memcpy(out, &header, sizeof header);
  if (!batch.empty()) std::memcpy(out + sizeof header, batch.data(), batch.size());
  std::memset(out + used, 0, stored - used);
  const std::uint32_t crc = crc32c({out + kCrcEnd, stored - kCrcEnd});
  write_crc(out, crc);
  return crc;
}

std::optional<std::uint32_t> claimed_length(std::string_view bytes, std::uint64_t segment) {
  if (bytes.size() < kBlock) return {};
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kRecordMagic) return {};
  if (header.segment != segment && !PAWL_MUTANT(segment_id_not_checked)) return {};
  return header.length;
}

bool looks_like_record(std::string_view bytes, std::uint64_t segment) {
  const auto length = claimed_length(bytes, segment);
  return length && stored_bytes(*length) <= bytes.size();
}

std::optional<BatchRecord> decode_record(std::string_view bytes, std::uint64_t segment) {
  if (!looks_like_record(bytes, segment)) return {};
  BatchRecord record;
  std::memcpy(&record.header, bytes.data(), sizeof record.header);
  record.stored_bytes = stored_bytes(record.header.length);
  if (record.header.crc != crc32c(bytes.substr(kCrcEnd, record.stored_bytes - kCrcEnd))) return {};
  PAWL_ASSERT(sizeof record.header + record.header.length <= record.stored_bytes);
  record.batch = bytes.substr(sizeof record.header, record.header.length);
  return record;
}

std::string segment_name(std::uint64_t segment) {
  return std::string(kSegmentPrefix) + std::to_string(segment) + std::string(kSegmentSuffix);
}

std::string checkpoint_name(std::uint64_t sequence) {
  return std::string(kCheckpointPrefix) + std::to_string(sequence);
}

std::optional<std::uint64_t> segment_of(std::string_view name) {
  if (!name.starts_with(kSegmentPrefix) || !name.ends_with(kSegmentSuffix)) return {};
  name.remove_prefix(kSegmentPrefix.size());
  if (name.size() < kSegmentSuffix.size()) return {};
  name.remove_suffix(kSegmentSuffix.size());
  return plain_number(name);
}

std::optional<std::uint64_t> checkpoint_of(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return {};
  return plain_number(name.substr(kCheckpointPrefix.size()));
}

bool is_unfinished(std::string_view name) {
  if (!name.ends_with(kUnfinishedSuffix)) return false;
  name.remove_suffix(kUnfinishedSuffix.size());
  return is_pawl_file(name);
}

bool is_pawl_file(std::string_view name) {
  return name == kLockFile || name == kIdentityFile || name == kCreatingFile ||
         name == kRestoringFile || name == kHighWaterFile || name == kMachineFile ||
         name == kBackupFile || segment_of(name) || checkpoint_of(name) || is_unfinished(name);
}

std::string path_in(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name);
}

Error damage(const std::string& path, std::uint64_t offset, std::string_view what) {
  return Error{Code::kInvalid,
               path + ": offset " + std::to_string(offset) + ": " + std::string(what)};
}

Error newer_format(const std::string& path, std::uint32_t version, std::uint32_t known) {
  return Error{Code::kInvalid, path + ": written by a newer Pawl (format " +
                                   std::to_string(version) + "; this one reads up to " +
                                   std::to_string(known) + ")"};
}

}  // namespace pawl::store::journal
