// The counters and the log of changes of one guard, in an object of their own: counting a refusal
// must not get in the way of the holder's writes. Losing it loses no fence.
//
//   pawl-guard 1
//   since 1700000000
//   replayed 0
//   … (one line for each counter)
//   audit 1700000000 mode: observe -> shadow (tuesday's rollout)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/s3/object_store.h"

namespace pawl::guard {

struct S3Record {
  std::uint64_t since = 0;  // when the mode was set, Unix seconds
  std::uint64_t replayed = 0;
  std::uint64_t stale = 0;
  std::uint64_t missing = 0;
  std::uint64_t ahead = 0;
  std::uint64_t malformed = 0;
  std::uint64_t would_refuse = 0;
  std::uint64_t missing_before = 0;  // what was counted when the mode was set
  std::uint64_t would_refuse_before = 0;
  // Of an object that was taken out of the guard: a guard that is made again goes on from here.
  std::uint64_t fence = 0;
  std::uint64_t sequence = 0;
  std::vector<std::string> audit = {};  // newest first

  bool operator==(const S3Record&) const = default;
};

[[nodiscard]] std::string to_bytes(const S3Record& record);
// What cannot be read counts as nothing.
[[nodiscard]] S3Record parse_record(std::string_view bytes);

}  // namespace pawl::guard
