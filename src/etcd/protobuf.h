// Protocol Buffers on the wire, as far as etcd's messages need it: integers and bytes, by field
// number. Nothing here knows a message.
//
//   std::string out;  put_bytes(out, 1, key);  put_integer(out, 3, revision);
//   FieldReader in(out);
//   while (const auto field = in.next()) …
//   if (!in.ok()) …malformed…
//
// A field is a varint key (number << 3 | type), then a varint (type 0), 8 bytes (1), a varint
// length and that many bytes (2), or 4 bytes (5). Groups (3 and 4) are malformed: no message of
// etcd has one. Fields may come in any order, and unknown ones are skipped by the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::etcd {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t integer = 0;  // 0 unless the type is kVarint.
  std::string_view bytes;     // Empty unless the type is kBytes. Points into the message.

  [[nodiscard]] bool is_integer(std::uint32_t wanted) const {
    return number == wanted && type == WireType::kVarint;
  }
  [[nodiscard]] bool is_bytes(std::uint32_t wanted) const {
    return number == wanted && type == WireType::kBytes;
  }
  [[nodiscard]] std::int64_t signed_integer() const { return static_cast<std::int64_t>(integer); }
};

// Never reads past the end of the message.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : rest_(message) {}

  // The next field; nothing at the end, or when the message is malformed.
  [[nodiscard]] std::optional<Field> next();
  // Whether everything so far was well formed.
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> varint();
  [[nodiscard]] bool skip(std::uint64_t count);
  std::optional<Field> fail();

  std::string_view rest_;
  bool ok_ = true;
};

void put_varint(std::string& out, std::uint64_t value);
// An integer or bool field. Zero is what an absent field means, so it is not written.
void put_integer(std::string& out, std::uint32_t number, std::int64_t value);
// The same, written even if it is zero: for a member of a oneof, whose presence counts.
void put_member(std::string& out, std::uint32_t number, std::int64_t value);
// Bytes, text or an encoded message; not written if empty.
void put_bytes(std::string& out, std::uint32_t number, std::string_view bytes);
// The same, written even if empty.
void put_message(std::string& out, std::uint32_t number, std::string_view bytes);

}  // namespace pawl::etcd
