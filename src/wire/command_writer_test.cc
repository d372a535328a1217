#include "wire/command_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/limits.h"
#include "wire/acquire_options.h"
#include "wire/arg_reader.h"
#include "wire/command_decoder.h"

namespace pawl::wire {
namespace {

using ::testing::ElementsAre;

// What an AcquireSpec points to.
struct Material {
  std::vector<std::string> locks;
  std::string owner;
  std::string request;
  std::vector<std::pair<std::string, std::string>> meta;
};

rc::Gen<std::string> text(std::size_t min, std::size_t max) {
  const auto character =
      rc::gen::element<std::string>("a", "Z", "/", " ", "\"", "7", "ä", "☂", "TTL");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(character),
                      [=](const std::vector<std::string>& parts) {
                        std::string out;
                        for (const auto& part : parts) {
                          if (out.size() + part.size() <= max) out += part;
                        }
                        while (out.size() < min) out.push_back('x');
                        return out;
                      });
}

Material material() {
  Material made;
  const auto count = *rc::gen::inRange<std::size_t>(1, limits::kLocksPerLease + 1);
  for (std::size_t i = 0; i < count; ++i) made.locks.push_back(std::to_string(i) + *text(0, 40));
  made.owner = *text(0, limits::kOwnerMax);
  const auto id = *rc::gen::inRange<std::size_t>(limits::kRequestMin, limits::kRequestMax + 1);
  if (*rc::gen::arbitrary<bool>()) made.request = std::string(id, '_');
  const auto pairs = *rc::gen::inRange<std::size_t>(0, limits::kMetaPairs + 1);
  for (std::size_t i = 0; i < pairs; ++i) made.meta.emplace_back(std::to_string(i), *text(0, 60));
  return made;
}

Millis millis(Millis min, Millis max) {
  return Millis(*rc::gen::inRange(min.count(), max.count() + 1));
}

AcquireSpec spec_of(const Material& material) {
  AcquireSpec spec;
  for (const auto& lock : material.locks) spec.locks.push_back(lock);
  if (spec.locks.size() == 1) {
    spec.terms.mode = *rc::gen::element(Mode::kExclusive, Mode::kShared, Mode::kLimit);
    if (spec.terms.mode == Mode::kLimit)
      spec.terms.limit = *rc::gen::inRange<std::uint32_t>(1, limits::kHoldersMax + 1);
  }
  spec.terms.ttl = millis(limits::kTtlMin, limits::kTtlMaxDefault);
  spec.wait = millis(Millis{0}, limits::kWaitMax);
  spec.owner = material.owner;
  spec.request = material.request;
  spec.async = !spec.request.empty() && *rc::gen::arbitrary<bool>();
  spec.terms.delay = millis(Millis{0}, limits::kDelayMax);
  if (*rc::gen::arbitrary<bool>())
    spec.terms.max_hold = millis(spec.terms.ttl, limits::kMaxHoldMax);
  for (const auto& [key, value] : material.meta) spec.meta.push_back({key, value});
  return spec;
}

void expect_equal(const AcquireSpec& a, const AcquireSpec& b) {
  RC_ASSERT(std::equal(a.locks.begin(), a.locks.end(), b.locks.begin(), b.locks.end()));
  RC_ASSERT(a.terms == b.terms);
  RC_ASSERT(a.wait == b.wait);
  RC_ASSERT(a.async == b.async);
  RC_ASSERT(a.owner == b.owner);
  RC_ASSERT(a.request == b.request);
  RC_ASSERT(std::equal(a.meta.begin(), a.meta.end(), b.meta.begin(), b.meta.end()));
}

RC_GTEST_PROP(CommandWriter, ParsingAnEncodedAcquireGivesBackTheSpec, ()) {
  const Material owned = material();
  const AcquireSpec spec = spec_of(owned);
  std::string bytes;
  append_acquire(bytes, spec);

  CommandDecoder decoder;
  const DecodedCommand command = decoder.decode(bytes);
  RC_ASSERT(command.status == DecodeStatus::kComplete);
  RC_ASSERT(command.consumed == bytes.size());
  ArgReader in({"ACQUIRE", -4, ""}, command.args);
  AcquireSpec parsed;
  parse_acquire(in, parsed, limits::kTtlMaxDefault, Protocol::kResp3);
  if (const auto error = in.take_error()) RC_FAIL(error->text);
  expect_equal(parsed, spec);
}

RC_GTEST_PROP(CommandWriter, AnyArgumentsSurviveDecoding, (const std::vector<std::string>& args)) {
  RC_PRE(!args.empty());
  const std::vector<std::string_view> views(args.begin(), args.end());
  std::string bytes;
  append_command(bytes, views);
  CommandDecoder decoder;
  const DecodedCommand command = decoder.decode(bytes);
  RC_ASSERT(command.status == DecodeStatus::kComplete);
  RC_ASSERT(std::equal(command.args.begin(), command.args.end(), views.begin(), views.end()));
}

TEST(CommandWriter, DefaultsAreLeftOut) {
  AcquireSpec spec;
  spec.locks.push_back("a");
  spec.terms.ttl = Millis(1000);
  std::string bytes;
  append_acquire(bytes, spec);
  EXPECT_EQ(bytes, "*4\r\n$7\r\nACQUIRE\r\n$1\r\na\r\n$3\r\nTTL\r\n$4\r\n1000\r\n");
}

TEST(CommandWriter, LeaseCommandsCarryTheirHexDigits) {
  std::string bytes;
  append_renew(bytes, LeaseId{1, 2});
  EXPECT_EQ(bytes, "*2\r\n$5\r\nRENEW\r\n$32\r\n00000000000000010000000000000002\r\n");
  bytes.clear();
  append_release(bytes, LeaseId{1, 2});
  EXPECT_EQ(bytes, "*2\r\n$7\r\nRELEASE\r\n$32\r\n00000000000000010000000000000002\r\n");
  bytes.clear();
  const std::vector<LeaseId> leases{{1, 2}, {3, 4}};
  append_mrenew(bytes, leases);
  CommandDecoder decoder;
  EXPECT_THAT(decoder.decode(bytes).args,
              ElementsAre("MRENEW", "ASKS", to_hex(LeaseId{1, 2}), to_hex(LeaseId{3, 4})));
  bytes.clear();
  append_renew_asks(bytes, LeaseId{1, 2});
  EXPECT_THAT(decoder.decode(bytes).args, ElementsAre("RENEW", to_hex(LeaseId{1, 2}), "ASKS"));
  bytes.clear();
  append_cancel(bytes, "id");
  EXPECT_EQ(bytes, "*2\r\n$6\r\nCANCEL\r\n$2\r\nid\r\n");
}

}  // namespace
}  // namespace pawl::wire
