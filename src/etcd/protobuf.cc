#include "etcd/protobuf.h"

namespace pawl::etcd {
namespace {

constexpr std::uint32_t kFieldNumberMax = (1u << 29) - 1;

void put_key(std::string& out, std::uint32_t number, WireType type) {
  put_varint(out, std::uint64_t{number} << 3 | static_cast<std::uint8_t>(type));
}

}  // namespace

// --- Reading -------------------------------------------------------------------------------------

std::optional<Field> FieldReader::fail() {
  ok_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> FieldReader::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10 && i < rest_.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(rest_[i]);
    if (i == 9 && byte > 1) return std::nullopt;  // More than 64 bits.
    value |= std::uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

bool FieldReader::skip(std::uint64_t count) {
  if (count > rest_.size()) return false;
  rest_.remove_prefix(count);
  return true;
}

std::optional<Field> FieldReader::next() {
  if (rest_.empty()) return std::nullopt;
  const auto key = varint();
  if (!key || *key >> 3 == 0 || *key >> 3 > kFieldNumberMax) return fail();
  Field field{static_cast<std::uint32_t>(*key >> 3), static_cast<WireType>(*key & 7), 0, {}};
  switch (field.type) {
    case WireType::kVarint: {
      const auto value = varint();
      if (!value) return fail();
      field.integer = *value;
      return field;
    }
    case WireType::kBytes: {
      const auto size = varint();
      if (!size || *size > rest_.size()) return fail();
      field.bytes = rest_.substr(0, *size);
      rest_.remove_prefix(*size);
      return field;
    }
    case WireType::kFixed64:
      return skip(8) ? std::optional(field) : fail();
    case WireType::kFixed32:
      return skip(4) ? std::optional(field) : fail();
  }
  return fail();
}

// --- Writing -------------------------------------------------------------------------------------

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_member(std::string& out, std::uint32_t number, std::int64_t value) {
  put_key(out, number, WireType::kVarint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

void put_integer(std::string& out, std::uint32_t number, std::int64_t value) {
  if (value != 0) put_member(out, number, value);
}

void put_message(std::string& out, std::uint32_t number, std::string_view bytes) {
  put_key(out, number, WireType::kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

void put_bytes(std::string& out, std::uint32_t number, std::string_view bytes) {
  if (!bytes.empty()) put_message(out, number, bytes);
}

}  // namespace pawl::etcd
