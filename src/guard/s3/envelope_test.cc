#include "guard/s3/envelope.h"

#include <gtest/gtest.h>

#include "aws/sigv4.h"

namespace pawl::guard {
namespace {

S3Envelope example() {
  S3Envelope envelope{.key = "reports/nightly 1.csv", .sequence = 12};
  envelope.nonces = {std::string(32, 'a'), std::string(32, '0')};
  envelope.token = 34;
  envelope.operation = 8;
  envelope.content = {S3Content::Place::kInline, 5, aws::sha256_hex("a\n\nb\n"), "", "a\n\nb\n"};
  envelope.policy.mode = GuardMode::kCanary;
  envelope.policy.percent = 20;
  envelope.policy.require_token = true;
  envelope.policy.equal = Equal::kOnce;
  envelope.policy.floor = 7;
  return envelope;
}

TEST(S3Envelope, IsReadBackAsItWasWritten) {
  S3Envelope envelope = example();
  EXPECT_EQ(*parse_envelope(to_bytes(envelope)), envelope);
  envelope.operation.reset();
  envelope.content = {};
  EXPECT_EQ(*parse_envelope(to_bytes(envelope)), envelope);
  envelope.content = {S3Content::Place::kObject, 9000, std::string(64, 'f'), ".pawl/data/a b/1-c",
                      ""};
  EXPECT_EQ(*parse_envelope(to_bytes(envelope)), envelope);
}

TEST(S3Envelope, IsNotTakenFromAnythingElse) {
  for (const char* bytes : {"", "hello", "pawl-fenced-object 2\nkey a\n", "pawl-fenced-object 1\n"})
    EXPECT_FALSE(parse_envelope(bytes)) << bytes;
}

TEST(S3Envelope, DamageAnywhereIsNoticed) {
  const std::string good = to_bytes(example());
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(parse_envelope(good.substr(0, cut))) << cut;
  EXPECT_FALSE(parse_envelope(good + "x"));
  std::string changed = good;
  changed.back() = 'x';
  EXPECT_FALSE(parse_envelope(changed)) << "the content has another checksum";
}

TEST(S3Envelope, NumbersHaveOneSpelling) {
  for (const char* text : {"", "01", "+1", "1 ", "-1", "99999999999999999999", "1e3"})
    EXPECT_FALSE(parse_count(text)) << text;
  EXPECT_EQ(parse_count("0"), 0u);
  EXPECT_EQ(parse_count("9007199254740991"), 9007199254740991u);
}

TEST(S3Envelope, TokenBeyondTheGreatestIsRefused) {
  std::string bytes = to_bytes(example());
  bytes.replace(bytes.find("token 34"), 8, "token 9007199254740992");
  EXPECT_FALSE(parse_envelope(bytes));
}

}  // namespace
}  // namespace pawl::guard
