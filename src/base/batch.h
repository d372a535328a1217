// A batch: puts and deletes of bytes that become durable together. The core fills it and a store
// makes it durable; neither knows the other.
//
//   Batch batch;
//   batch.put(key, value);
//   batch.erase(other);
//   batch.cover(token);
//
// Encoding, per operation: u8 kind (1 put, 2 erase), u16 key length, u32 value length (0 for
// erase), key, value. Later operations on a key override earlier ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

// What one batch may hold at most.
struct BatchLimits {
  std::size_t bytes = SIZE_MAX;  // As Batch::bytes() counts them.
  std::size_t operations = SIZE_MAX;
};

// Encodes each operation as it is added.
class Batch {
 public:
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  // This batch uses numbers up to and including `number`; the store's high water must cover it
  // before the batch is written.
  void cover(std::uint64_t number) { covered_ = number > covered_ ? number : covered_; }

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t covered() const { return covered_; }
  [[nodiscard]] std::size_t operations() const { return operations_; }
  void clear() {
    bytes_.clear();
    covered_ = 0;
    operations_ = 0;
  }

 private:
  std::string bytes_;
  std::uint64_t covered_ = 0;
  std::size_t operations_ = 0;
};

// One decoded operation; it points into the bytes that were decoded.
struct Operation {
  bool put = false;
  std::string_view key;
  std::string_view value;
};

// Removes the next operation from the front of `bytes` and returns it. An error if they are not the
// bytes of a batch.
[[nodiscard]] Result<Operation> take_operation(std::string_view& bytes);

}  // namespace pawl
