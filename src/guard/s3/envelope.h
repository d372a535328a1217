// The fenced object, as bytes: the fence, the policy and the content of one guarded object, or where
// that content is. Since all of it is one object, one conditional PUT replaces it as a whole. The
// format is documented in docs/reference/s3-format.md. Pure.
//
//   pawl-fenced-object 1
//   key reports/nightly.csv
//   sequence 12
//   nonces 4f1c… 09ab…
//   token 34
//   operation 8
//   content inline 5 2cf24d…
//   mode enforce
//   percent 100
//   require_token off
//   equal accept
//   max_step 17592186044416
//   floor 0
//
//   hello
//
// A fenced object is valid when it begins with the first line, has each of these lines once, in this
// order, and behind the empty line exactly the content that `content inline` tells (else nothing).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/scratch.h"
#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

struct S3Policy {
  GuardMode mode = GuardMode::kObserve;
  int percent = 100;  // canary
  bool require_token = false;
  Equal equal = Equal::kAccept;
  std::uint64_t max_step = std::uint64_t{1} << 44;
  std::uint64_t floor = 0;

  bool operator==(const S3Policy&) const = default;
};

struct S3Content {
  enum class Place : std::uint8_t {
    kNone,    // nothing was written yet, or it was deleted; the fence stays
    kInline,  // behind the lines
    kObject,  // in an object of its own, which is never changed
  };
  Place place = Place::kNone;
  std::uint64_t size = 0;
  std::string sha256 = {};  // of the content
  std::string object = {};  // kObject: its key
  std::string bytes = {};   // kInline

  bool operator==(const S3Content&) const = default;
};

struct S3Envelope {
  std::string key;
  // Grows by one with each replacement, whatever it changes.
  std::uint64_t sequence = 0;
  // Random, one for each replacement, the newest first: the first belongs to `sequence`, the next
  // to `sequence` - 1. They make every body, and so every ETag, unique, and tell which of several
  // writers has replaced what.
  std::vector<std::string> nonces = {};
  std::uint64_t token = 0;  // the fence; 0: none yet
  // Under that token: 0 without a number. Nothing: it was advanced to, and not written under.
  std::optional<std::uint64_t> operation = {};
  S3Content content = {};
  S3Policy policy = {};

  bool operator==(const S3Envelope&) const = default;
};

[[nodiscard]] std::string to_bytes(const S3Envelope& envelope);
// kInvalid: it is not a fenced object, or not one that this pawl knows.
[[nodiscard]] Result<S3Envelope> parse_envelope(std::string_view bytes);

[[nodiscard]] std::optional<Equal> parse_equal(std::string_view text);
// A whole number in decimal digits, without a sign or a leading zero; 0 is one.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);

}  // namespace pawl::guard
