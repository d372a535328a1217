// The options of ACQUIRE as data: one row each. The parser below, wire::append_acquire, the body of
// POST /v1/acquire and its OpenAPI schema are derived from these rows.
//
//   for (const AcquireOption& option : acquire_options())
//     if (const auto number = option.get(spec)) write(option.word, *number);
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/lease_terms.h"
#include "wire/arg_reader.h"
#include "wire/reply_writer.h"

namespace pawl::wire {

enum class OptionKind : std::uint8_t {
  kMillis,     // A duration in milliseconds: get and set.
  kNumber,     // A whole number: get and set.
  kFlag,       // Takes no argument: get and set, 1 when given.
  kText,       // Plain text: `text`.
  kRequestId,  // A request id: `text`. Over HTTP it is the header Idempotency-Key, not a member.
  kMeta,       // A key and a value, repeatable: AcquireSpec::meta.
};

struct AcquireOption {
  std::string_view word;           // On the wire, in upper case.
  std::string_view argument = {};  // As the usage shows it; empty for a flag.
  OptionKind kind = OptionKind::kNumber;
  // Of the number, or of the text's length in bytes. TTL is bounded by the configuration besides.
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();

  // Numbers and flags. get answers nothing when the option need not be written.
  std::optional<std::uint64_t> (*get)(const AcquireSpec&) = nullptr;
  void (*set)(AcquireSpec&, std::uint64_t) = nullptr;
  std::string_view AcquireSpec::*text = nullptr;  // Texts. Empty: not given.

  // Over HTTP.
  std::string_view member = {};               // Of the body; empty: there is none.
  std::uint64_t http_max = 0;                 // When it is less than max; 0: the same.
  std::optional<std::uint64_t> omitted = {};  // What a missing member means; nothing: required.
  std::string_view description = {};          // For the schema.

  [[nodiscard]] std::uint64_t member_max() const { return http_max != 0 ? http_max : max; }
};

// In the order in which they are written.
[[nodiscard]] std::span<const AcquireOption> acquire_options();

// ACQUIRE lock [AND lock]… and its options, into `spec`. The first thing that is wrong is kept in
// `in`; `spec` is then of no use.
void parse_acquire(ArgReader& in, AcquireSpec& spec, Millis ttl_max, Protocol protocol);

}  // namespace pawl::wire
