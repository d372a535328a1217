// The secrets of users: generated here, printed once, and stored only as a salted digest.
//
//   const std::string secret = auth::new_secret(random);   // 64 hex digits, 256 random bits
//   const auth::Digest stored = auth::digest_of(secret, random);
//   if (!auth::matches(stored, offered)) …                 // in constant time
//
// The digest is SHA-256 over the salt's digits followed by the secret, both as text. A slow hash
// would add nothing, because 256 random bits cannot be guessed, and would stall every renewal while
// it is computed (docs/decisions/0002).
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace pawl::auth {

inline constexpr std::size_t kSaltDigits = 32;
inline constexpr std::size_t kDigestDigits = 64;

// Both lowercase hex.
struct Digest {
  std::string salt;
  std::string sha256;
  bool operator==(const Digest&) const = default;
};

[[nodiscard]] std::string new_secret(Random& random);
// The digest of `secret` with a new salt.
[[nodiscard]] Digest digest_of(std::string_view secret, Random& random);
// Whether `stored` is a digest of `secret`. Takes the same time for a right and a wrong secret.
[[nodiscard]] bool matches(const Digest& stored, std::string_view secret);

}  // namespace pawl::auth
