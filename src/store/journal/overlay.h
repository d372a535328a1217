// What a run of batches changes: the last operation on each key. Replay fills it, load and
// checkpoint lay it over the older checkpoint.
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

  // Copies what it keeps. An error when these are not a batch's bytes; what came before it is
  // applied then.
  Result<void> apply_batch(std::string_view batch);
  void apply(const Operation& operation);

  // The last operation on `key`, or null. Not after sort().
  [[nodiscard]] const Operation* find(std::string_view key) const;

  // One per key, in no promised order; by key after sort().
  [[nodiscard]] std::span<const Operation> changes() const { return changes_; }
  void sort();

 private:
  struct Slot {
    std::uint32_t change = 0;  // 1 + the index of a change, or 0: free.
    std::uint32_t hash = 0;    // So that probing and growing seldom touch the keys themselves.
  };
  [[nodiscard]] std::size_t slot_of(std::string_view key, std::uint32_t hash) const;
  void grow();
  std::string_view keep(std::string_view text);

  std::vector<Slot> slots_;         // Open addressing; a power of two, at most half full.
  std::vector<Operation> changes_;  // Views into chunks_.
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_left_ = 0;
  char* chunk_next_ = nullptr;
};

}  // namespace pawl::store::journal
