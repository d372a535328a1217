// The head of a shared log: who is active, and how far the log goes. Every write compares it as a
// whole and writes its successor (rule 12).
//
// Encoding: u8 format (1), u8 state, u64 incarnation, u64 epoch, u64 number, u64 u64 writer,
// u64 last, u64 covered, text address. Valid: exactly these bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "pawl/result.h"

namespace pawl::store::cluster {

struct Head {
  enum class State : std::uint8_t {
    kActive = 1,
    kResigned = 2,  // Whoever reads it may take over at once.
  };
  State state = State::kActive;
  Incarnation incarnation;
  std::uint64_t epoch = 0;   // One more at each takeover.
  std::uint64_t number = 0;  // One more at each write.
  // Random, new at each takeover. Epoch and number come again when the log is restored from a
  // backup; with another history, which an old active one must not take for its own.
  std::uint64_t writer[2] = {0, 0};
  std::uint64_t last = 0;     // The last entry of the log.
  std::uint64_t covered = 0;  // The high water of Store.
  std::string address;        // Where clients reach the writer.

  [[nodiscard]] bool same_writer(const Head& other) const {
    return epoch == other.epoch && writer[0] == other.writer[0] && writer[1] == other.writer[1];
  }
};

[[nodiscard]] std::string encode(const Head& head);
[[nodiscard]] Result<Head> decode_head(std::string_view bytes);

}  // namespace pawl::store::cluster
