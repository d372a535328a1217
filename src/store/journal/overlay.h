// What a run of batches changes: the last operation on each key. Replay fills it, load and checkpoint lay it over the
// older checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "store/store.h"

namespace pawl::store::journal {

class Overlay {
 public:
  Overlay();

  // Copies what it keeps. An error when these are not a batch's bytes; what came before it is applied then.
  Result<void> apply_batch(std::string_view batch);
  void apply(const Operation& operation);

  // The last operation on `key`, or null. Not after sort().
  [[nodiscard]] const Operation* find(std::string_view key) const;

  // One per key, in no promised order; by key after sort().
  [[nodiscard]] std::span<const Operation> changes() const { return changes_; }
  void sort();

 private:
  [[nodiscard]] std::size_t slot_of(std::string_view key) const;
  void grow();
  std::string_view keep(std::string_view text);

  // Open addressing; a slot holds 1 + the index of a change, or 0. A power of two, at most half full.
  std::vector<std::uint32_t> slots_;
  std::vector<Operation> changes_;  // Views into chunks_.
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_left_ = 0;
  char* chunk_next_ = nullptr;
};

}  // namespace pawl::store::journal
