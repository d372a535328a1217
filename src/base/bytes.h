// Little-endian encoding of records, and decoding that never reads past the end.
//
//   std::string out;  put_u32(out, 7); put_text(out, "name");
//   ByteReader in(out);  auto n = in.u32(); auto name = in.text();  if (!in.done()) …damage…
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/assert.h"

namespace pawl {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

// Appends an integer, little-endian.
template <class Int>
void put_int(std::string& out, Int value) {
  char raw[sizeof(Int)];
  std::memcpy(raw, &value, sizeof(Int));
  out.append(raw, sizeof(Int));
}
inline void put_u8(std::string& out, std::uint8_t v) {
  put_int(out, v);
}
inline void put_u16(std::string& out, std::uint16_t v) {
  put_int(out, v);
}
inline void put_u32(std::string& out, std::uint32_t v) {
  put_int(out, v);
}
inline void put_u64(std::string& out, std::uint64_t v) {
  put_int(out, v);
}
// Appends a u16 length and the bytes; at most 65,535.
inline void put_text(std::string& out, std::string_view text) {
  PAWL_ASSERT(text.size() <= UINT16_MAX);
  put_u16(out, static_cast<std::uint16_t>(text.size()));
  out.append(text);
}

// Appends an integer, big-endian, so that keys sort by number.
inline void put_u64_ordered(std::string& out, std::uint64_t v) {
  put_u64(out, __builtin_bswap64(v));
}

// A buffer of exactly kSize bytes, filled with integers one after the other; the same bytes as
// put_int() would append.
template <std::size_t kSize>
class FixedBytes {
 public:
  template <class Int>
  void put(Int value) {
    PAWL_ASSERT(size_ + sizeof(Int) <= kSize);
    std::memcpy(bytes_ + size_, &value, sizeof(Int));
    size_ += sizeof(Int);
  }
  [[nodiscard]] std::string_view view() const {
    PAWL_ASSERT(size_ == kSize);
    return {bytes_, kSize};
  }

 private:
  char bytes_[kSize];
  std::size_t size_ = 0;
};

// Reads what put_* wrote. After a read past the end every further read returns zero or nothing, and
// ok() stays false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return integer<std::uint8_t>(); }
  std::uint16_t u16() { return integer<std::uint16_t>(); }
  std::uint32_t u32() { return integer<std::uint32_t>(); }
  std::uint64_t u64() { return integer<std::uint64_t>(); }
  std::uint64_t u64_ordered() { return __builtin_bswap64(u64()); }
  std::string_view text() { return bytes(u16()); }
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  // Everything was read, and nothing past the end.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  template <class Int>
  Int integer() {
    const std::string_view raw = bytes(sizeof(Int));
    Int value{};
    if (raw.size() == sizeof(Int)) std::memcpy(&value, raw.data(), sizeof(Int));
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace pawl
