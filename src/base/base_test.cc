#include <gtest/gtest.h>

#include <bit>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"
#include "pawl/result.h"

namespace pawl {
namespace {

TEST(Crc32c, MatchesThePublishedCheckValue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32c, ContinuesOverPiecesOfAnyLength) {
  const std::string text = "a pawl lets the ratchet turn one way only";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text)) << cut;
  }
}

TEST(Hex, RoundTripsEveryLease) {
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const LeaseId lease = random.lease_id();
    EXPECT_EQ(lease_from_hex(to_hex(lease)), lease);
  }
}

TEST(Hex, RefusesAnythingBut32LowercaseDigits) {
  EXPECT_FALSE(lease_from_hex(""));
  EXPECT_FALSE(lease_from_hex(std::string(31, 'a')));
  EXPECT_FALSE(lease_from_hex(std::string(33, 'a')));
  EXPECT_FALSE(lease_from_hex(std::string(32, 'A')));
  EXPECT_FALSE(lease_from_hex(std::string(31, 'a') + "g"));
}

// Digits are read eight at a time, so each byte value is tried at each place.
TEST(Hex, EveryByteAtEveryPlaceIsADigitOrRefused) {
  const std::string digits = "0123456789abcdef";
  for (std::size_t place = 0; place < kLeaseDigits; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(kLeaseDigits, '0');
      text[place] = static_cast<char>(byte);
      const auto lease = lease_from_hex(text);
      const std::size_t value = digits.find(static_cast<char>(byte));
      ASSERT_EQ(lease.has_value(), value != std::string::npos) << place << ' ' << byte;
      if (!lease) continue;
      const std::uint64_t word = place < 16 ? lease->high : lease->low;
      EXPECT_EQ(word, std::uint64_t{value} << 4 * (15 - place % 16)) << place << ' ' << byte;
      EXPECT_EQ(to_hex(*lease), text);
    }
  }
}

// Printable ASCII is checked eight bytes at a time.
TEST(PlainText, AControlByteIsRefusedAtEveryPlace) {
  for (std::size_t size = 1; size <= 20; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        for (const char filler : {' ', '~'}) {
          std::string text(size, filler);
          text[place] = static_cast<char>(byte);
          EXPECT_EQ(is_plain_text(text), byte >= 0x20 && byte < 0x7f)
              << size << ' ' << place << ' ' << byte;
        }
      }
    }
  }
}

TEST(PlainText, LettersBeyondAsciiAreAcceptedAtEveryPlace) {
  for (std::size_t place = 0; place <= 20; ++place) {
    std::string text(20, 'x');
    text.insert(place, "\xe2\x82\xac");  // the euro sign
    EXPECT_TRUE(is_plain_text(text)) << place;
    text.insert(place, "\xc2\x9b");  // U+009B, a control character
    EXPECT_FALSE(is_plain_text(text)) << place;
  }
}

TEST(Bytes, ReadsBackWhatWasWrittenAndNothingPastTheEnd) {
  static_assert(std::endian::native == std::endian::little);
  std::string out;
  put_u8(out, 1);
  put_u32(out, 2);
  put_text(out, "three");
  put_u64_ordered(out, 4);
  ByteReader in(out);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u32(), 2u);
  EXPECT_EQ(in.text(), "three");
  EXPECT_EQ(in.u64_ordered(), 4u);
  EXPECT_TRUE(in.done());
  EXPECT_EQ(in.u64(), 0u);
  EXPECT_FALSE(in.ok());
}

TEST(Result, CarriesAValueOrAnErrorNeverBoth) {
  Result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  Result<int> bad = Error{Code::kBusy, "held"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kBusy);
}

}  // namespace
}  // namespace pawl
