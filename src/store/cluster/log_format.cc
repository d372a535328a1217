#include "store/cluster/log_format.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"

namespace pawl::store::cluster {
namespace {

constexpr std::uint32_t kHeadMagic = 0x484c5750;   // "PWLH"
constexpr std::uint32_t kEntryMagic = 0x454c5750;  // "PWLE"
constexpr std::size_t kCrcOffset = 4;
constexpr std::size_t kCrcFrom = 8;

Error invalid(std::string_view what) {
  return {Code::kInvalid, std::string(what)};
}

// Fills in the crc field.
std::uint32_t seal(std::string& bytes) {
  const std::uint32_t crc = crc32c(std::string_view(bytes).substr(kCrcFrom));
  std::memcpy(bytes.data() + kCrcOffset, &crc, sizeof(crc));
  return crc;
}

// Checks what head and entry have in common; `what` is for the error.
Result<std::uint32_t> check_frame(std::string_view bytes, std::uint32_t magic,
                                  std::string_view what) {
  const std::string name(what);
  ByteReader in(bytes);
  if (in.u32() != magic) return invalid(name + " is no " + name + " of Pawl's log");
  const std::uint32_t crc = in.u32();
  if (crc32c(bytes.substr(std::min(kCrcFrom, bytes.size()))) != crc)
    return invalid(name + ": wrong checksum");
  const std::uint32_t version = in.u32();
  if (version != kLogVersion) {
    return invalid(name + " is of format " + std::to_string(version) + "; this pawld knows " +
                   std::to_string(kLogVersion) + ": use a newer one");
  }
  return crc;
}

}  // namespace

// --- Head ----------------------------------------------------------------------------------------

std::string encode_head(const Head& head) {
  PAWL_ASSERT(head.address.size() <= limits::kEtcdAddressMax);
  std::string out;
  put_u32(out, kHeadMagic);
  put_u32(out, 0);
  put_u32(out, kLogVersion);
  put_u32(out, static_cast<std::uint32_t>(head.state));
  for (const std::uint64_t number :
       {head.incarnation.value, head.epoch, head.n, head.writer.high, head.writer.low, head.first,
        head.last, head.covered, head.sequence})
    put_u64(out, number);
  put_u32(out, head.last_crc);
  put_u32(out, static_cast<std::uint32_t>(head.address.size()));
  out.append(head.address);
  out.resize(kHeadBytes, '\0');
  seal(out);
  return out;
}

Result<Head> decode_head(std::string_view bytes) {
  if (bytes.size() != kHeadBytes) return invalid("the head has the wrong size");
  if (const auto framed = check_frame(bytes, kHeadMagic, "head"); !framed) return framed.error();
  ByteReader in(bytes.substr(12));
  Head head;
  const std::uint32_t state = in.u32();
  if (state < 1 || state > 2) return invalid("head: unknown state");
  head.state = static_cast<HeadState>(state);
  head.incarnation.value = in.u64();
  head.epoch = in.u64();
  head.n = in.u64();
  head.writer.high = in.u64();
  head.writer.low = in.u64();
  head.first = in.u64();
  head.last = in.u64();
  head.covered = in.u64();
  head.sequence = in.u64();
  head.last_crc = in.u32();
  const std::uint32_t address = in.u32();
  if (address > limits::kEtcdAddressMax) return invalid("head: the address is too long");
  head.address = in.bytes(address);
  PAWL_ASSERT(in.ok());
  if (head.first == 0 || head.last == UINT64_MAX || head.last + 1 < head.first)
    return invalid("head: the numbers of the entries are impossible");
  return head;
}

// --- Entries -------------------------------------------------------------------------------------

EncodedEntry encode_entry(const EntryHeader& header, std::string_view carried,
                          std::string_view operations) {
  std::string out;
  out.reserve(kEntryHeaderBytes + carried.size() + operations.size());
  put_u32(out, kEntryMagic);
  put_u32(out, 0);
  put_u32(out, kLogVersion);
  put_u32(out, header.previous_crc);
  for (const std::uint64_t number :
       {header.incarnation.value, header.epoch, header.number, header.sequence})
    put_u64(out, number);
  put_u32(out, 0);
  put_u32(out, static_cast<std::uint32_t>(carried.size()));
  PAWL_ASSERT(out.size() == kEntryHeaderBytes);
  out.append(carried).append(operations);
  const std::uint32_t crc = seal(out);
  return {std::move(out), crc};
}

Result<Entry> decode_entry(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderBytes) return invalid("the entry is cut off");
  const auto crc = check_frame(bytes, kEntryMagic, "entry");
  if (!crc) return crc.error();
  ByteReader in(bytes.substr(12));
  Entry entry;
  entry.crc = *crc;
  entry.header.previous_crc = in.u32();
  entry.header.incarnation.value = in.u64();
  entry.header.epoch = in.u64();
  entry.header.number = in.u64();
  entry.header.sequence = in.u64();
  if (in.u32() != 0) return invalid("entry: unknown flags");
  const std::uint32_t carried = in.u32();
  entry.carried = in.bytes(carried);
  if (!in.ok()) return invalid("entry: more carried records than bytes");
  entry.operations = in.rest();
  return entry;
}

}  // namespace pawl::store::cluster
