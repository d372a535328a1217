#include "client/request_id.h"

#include <string_view>

namespace pawl::client {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr int kDigitsPerWord =
    11;  // 6 bits each; the last one carries the 4 bits that are left of 64

}  // namespace

std::string make_request_id(Random& random) {
  std::string id;
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = random.next();
    for (int digit = 0; digit < kDigitsPerWord; ++digit, bits >>= 6)
      id.push_back(kAlphabet[bits & 63]);
  }
  return id;
}

}  // namespace pawl::client
