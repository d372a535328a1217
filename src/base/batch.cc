#include "base/batch.h"

#include "base/assert.h"
#include "base/bytes.h"

namespace pawl {
namespace {

constexpr std::uint8_t kPut = 1;
constexpr std::uint8_t kErase = 2;

void put_header(std::string& out, std::uint8_t kind, std::size_t key, std::size_t value) {
  PAWL_ASSERT(key <= UINT16_MAX && value <= UINT32_MAX);
  FixedBytes<7> header;
  header.put(kind);
  header.put(static_cast<std::uint16_t>(key));
  header.put(static_cast<std::uint32_t>(value));
  out.append(header.view());
}

}  // namespace

void Batch::put(std::string_view key, std::string_view value) {
  ++operations_;
  put_header(bytes_, kPut, key.size(), value.size());
  bytes_.append(key);
  bytes_.append(value);
}

void Batch::erase(std::string_view key) {
  ++operations_;
  put_header(bytes_, kErase, key.size(), 0);
  bytes_.append(key);
}

Result<Operation> take_operation(std::string_view& bytes) {
  ByteReader in(bytes);
  const std::uint8_t kind = in.u8();
  const std::uint16_t key_size = in.u16();
  const std::uint32_t value_size = in.u32();
  const std::string_view key = in.bytes(key_size);
  const std::string_view value = in.bytes(value_size);
  const bool known = kind == kPut || (kind == kErase && value_size == 0);
  if (!in.ok() || !known) return Error{Code::kInvalid, "not the bytes of a batch"};
  bytes = in.rest();
  return Operation{kind == kPut, key, value};
}

}  // namespace pawl
