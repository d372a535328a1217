// A batch: puts and deletes of bytes that become durable together. Core fills it, a store makes it
// durable; neither knows the other.
//
//   Batch batch;  batch.put(key, value);  batch.erase(other);  batch.cover(token);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

// Encoded as it is appended. Later operations on a key override earlier ones. Encoding, per
// operation: u8 kind (1 put, 2 erase), u16 key length, u32 value length (0 for erase), key, value.
class Batch {
 public:
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  // This batch uses numbers up to and including `number`: the store's high water must cover it
  // first.
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

struct Operation {
  bool put = false;
  std::string_view key;
  std::string_view value;
};

// Takes the next operation off the front of `bytes`; an error when they are not a batch's bytes.
[[nodiscard]] Result<Operation> take_operation(std::string_view& bytes);

}  // namespace pawl
