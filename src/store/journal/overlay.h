// The last operation on each key in a run of batches. Replay fills it; a load or a new checkpoint
// applies it over the older checkpoint.
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

  // Applies every operation of a batch, copying what it keeps. An error if the bytes are not a
  // batch; the operations before the error are applied then.
  Result<void> apply_batch(std::string_view batch);
  void apply(const Operation& operation);

  // The last operation on `key`, or null. Must not be called after sort().
  [[nodiscard]] const Operation* find(std::string_view key) const;

  // One operation per key, in no particular order until sort().
  [[nodiscard]] std::span<const Operation> changes() const { return changes_; }
  // Sorts the changes by key. Neither apply() nor find() may follow.
  void sort();

 private:
  struct Slot {
    std::uint32_t change = 0;  // 1 + the index of a change, or 0: free.
    std::uint32_t hash = 0;    // Kept so that probing and growing seldom read the keys.
  };
  // The slot of `key`, or the free slot where it belongs.
  [[nodiscard]] std::size_t slot_of(std::string_view key, std::uint32_t hash) const;
  void grow();
  // Copies `text` into a chunk.
  std::string_view keep(std::string_view text);

  std::vector<Slot> slots_;         // Open addressing; a power of two, at most half full.
  std::vector<Operation> changes_;  // Views into chunks_.
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_left_ = 0;
  char* chunk_next_ = nullptr;
  bool sorted_ = false;
};

}  // namespace pawl::store::journal
