// The decision: one token, one resource, in the transaction that writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "guard/sqlite/connection_state.h"
#include "pawl/guard.h"

namespace pawl::sqlite {

enum class Carry : std::uint8_t {
  kNo,   // admit: only a write that asks is judged
  kYes,  // use: what follows in this transaction is written under it
};

// In an open transaction that the state has joined. The verdict when the writer may go on, also
// when it is let through; else a Fault.
Verdict admit(ConnectionState& state, const Named& named, std::uint64_t token,
              std::optional<std::uint64_t> operation, Carry carry);

// Throws where this guard refuses, and the connection could not undo what was refused.
void insist_on_journal(ConnectionState& state, const Named& named);
// A trigger asks: may this row be written, with what the transaction carries? A Fault when not.
void judge_write(ConnectionState& state, const Named& named);

// Raises the fence in a transaction of its own, durably, waiting for other writers. The fence
// before (0: none).
std::uint64_t advance(ConnectionState& state, std::string_view resource, std::uint64_t token,
                      std::chrono::milliseconds wait);

// The verdict a write would get now. Moves nothing, locks nothing.
Decision check(ConnectionState& state, std::string_view resource, std::uint64_t token);

// Counts what is no token, or no operation number, and throws.
[[noreturn]] void refuse_malformed(ConnectionState& state, const Named& named,
                                   std::string_view what);

// The mode that holds now: the emergency switch turns what refuses into shadow.
[[nodiscard]] GuardMode effective_mode(const Named& named);

}  // namespace pawl::sqlite
