#include "auth/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>

#include "base/assert.h"
#include "base/hex.h"

namespace pawl::auth {
namespace {

std::string sha256(std::string_view salt, std::string_view secret) {
  std::string salted;
  salted.reserve(salt.size() + secret.size());
  salted.append(salt).append(secret);
  std::array<unsigned char, kDigestDigits / 2> bytes{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(salted.data(), salted.size(), bytes.data(), &size, EVP_sha256(), nullptr);
  PAWL_ASSERT(done == 1 && size == bytes.size());
  OPENSSL_cleanse(salted.data(), salted.size());
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  digits.reserve(kDigestDigits);
  for (const unsigned char byte : bytes) {
    digits.push_back(kDigits[byte >> 4]);
    digits.push_back(kDigits[byte & 0xf]);
  }
  return digits;
}

}  // namespace

std::string new_secret(Random& random) {
  return to_hex(random.lease_id()) + to_hex(random.lease_id());
}

Digest digest_of(std::string_view secret, Random& random) {
  std::string salt = to_hex(random.lease_id());
  std::string digest = sha256(salt, secret);
  PAWL_ASSERT(salt.size() == kSaltDigits && digest.size() == kDigestDigits);
  return {std::move(salt), std::move(digest)};
}

bool matches(const Digest& stored, std::string_view secret) {
  const std::string offered = sha256(stored.salt, secret);
  return stored.sha256.size() == offered.size() &&
         CRYPTO_memcmp(stored.sha256.data(), offered.data(), offered.size()) == 0;
}

}  // namespace pawl::auth
