#include "wire/command_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "wire/acquire_options.h"
#include "wire/reply_decoder.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

using ::testing::HasSubstr;

template <class Write>
Value documented(Protocol protocol, Write write) {
  std::string bytes;
  ReplyWriter reply(bytes, protocol);
  write(reply);
  DecodedReply decoded = ReplyDecoder().decode(bytes);
  EXPECT_EQ(decoded.status, DecodeStatus::kComplete) << decoded.message;
  EXPECT_EQ(decoded.consumed, bytes.size());
  return std::move(decoded.value);
}

TEST(Verbs, AreFoundInAnyCaseAndNothingElseIs) {
  for (const Verb& verb : all_verbs()) {
    EXPECT_EQ(find_verb(verb.name), &verb);
    EXPECT_EQ(find_verb(lower(verb.name)), &verb);
    EXPECT_EQ(find_verb(std::string(verb.name) + "X"), nullptr);
    EXPECT_EQ(find_verb(verb.name.substr(0, verb.name.size() - 1)), nullptr);
  }
  EXPECT_EQ(find_verb(""), nullptr);
  EXPECT_EQ(find_verb("GET"), nullptr);
  EXPECT_EQ(find_verb("ACQ\x15IRE"), nullptr) << "folding case folds letters only";
}

TEST(AcquireOptions, AreAllInTheUsageOfAcquire) {
  for (const AcquireOption& option : acquire_options()) {
    const std::string words = std::string(option.word) +
                              (option.argument.empty() ? "" : " " + std::string(option.argument));
    EXPECT_THAT(std::string(verb(VerbId::kAcquire).usage), HasSubstr(words));
  }
}

TEST(AcquireOptions, HaveADescriptionWhereTheyAreMembersOfABody) {
  for (const AcquireOption& option : acquire_options())
    EXPECT_EQ(option.member.empty(), option.description.empty()) << option.word;
}

TEST(Verbs, ArityCountsTheNameAndNegativeMeansAtLeast) {
  EXPECT_TRUE(verb(VerbId::kRenew).accepts(2));
  EXPECT_FALSE(verb(VerbId::kRenew).accepts(1));
  EXPECT_FALSE(verb(VerbId::kRenew).accepts(3));
  EXPECT_TRUE(verb(VerbId::kMRenew).accepts(1025));
  EXPECT_FALSE(verb(VerbId::kMRenew).accepts(1));
}

TEST(Verbs, TheReservedLaneRenewsAndReleasesButAcquiresNothing) {
  EXPECT_TRUE(verb(VerbId::kRenew).reserved_lane && verb(VerbId::kMRenew).reserved_lane);
  EXPECT_TRUE(verb(VerbId::kRelease).reserved_lane && verb(VerbId::kPing).reserved_lane);
  EXPECT_FALSE(verb(VerbId::kAcquire).reserved_lane || verb(VerbId::kLocks).reserved_lane);
}

TEST(Verbs, WhileLoadingOnlyStatusAndTheHandshakeAnswer) {
  for (const Verb& verb : all_verbs()) {
    const bool handshake = verb.group == "connection" || verb.group == "server";
    EXPECT_EQ(verb.while_loading, handshake || verb.id == VerbId::kStatus) << verb.name;
  }
}

TEST(CommandDocs, DocsAreAMapFromNameToFactsInBothVersions) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    const Value docs = documented(protocol, [](ReplyWriter& r) {
      write_command_reply(r, {Command::Op::kDocs, {}});
    });
    EXPECT_EQ(docs.items.size(), 2 * kVerbCount);
    const Value* acquire = docs.find("acquire");
    ASSERT_NE(acquire, nullptr);
    EXPECT_EQ(acquire->find("summary")->as_text(), verb(VerbId::kAcquire).summary);
    EXPECT_EQ(acquire->find("arguments")->items[0].find("name")->as_text(),
              verb(VerbId::kAcquire).usage);
    EXPECT_EQ(docs.find("status")->find("arguments"), nullptr);
  }
}

TEST(CommandDocs, NamedDocsLeaveOutWhatIsUnknown) {
  const std::vector<std::string_view> names{"ACQUIRE", "flushall"};
  const Value docs = documented(Protocol::kResp3, [&](ReplyWriter& r) {
    write_command_reply(r, {Command::Op::kDocs, names});
  });
  EXPECT_EQ(docs.items.size(), 2u);
  const Value infos = documented(Protocol::kResp2, [&](ReplyWriter& r) {
    write_command_reply(r, {Command::Op::kInfo, names});
  });
  ASSERT_EQ(infos.items.size(), 2u);
  EXPECT_EQ(infos.items[0].items.size(), 10u);
  EXPECT_EQ(infos.items[0].items[1].as_integer(), -4);
  EXPECT_TRUE(infos.items[1].is_null());
}

TEST(CommandDocs, CountListAndAllAgreeWithTheTable) {
  const auto ask = [](Command::Op op) {
    return documented(Protocol::kResp3, [op](ReplyWriter& r) { write_command_reply(r, {op, {}}); });
  };
  EXPECT_EQ(ask(Command::Op::kCount).as_integer(), static_cast<std::int64_t>(kVerbCount));
  EXPECT_EQ(ask(Command::Op::kList).items.size(), kVerbCount);
  EXPECT_EQ(ask(Command::Op::kAll).items.size(), kVerbCount);
}

TEST(CommandDocs, HelpKnowsEveryVerb) {
  const Value list = documented(Protocol::kResp2, [](ReplyWriter& r) { write_help(r, {}); });
  EXPECT_EQ(list.items.size(), kVerbCount);
  const Value one = documented(Protocol::kResp2, [](ReplyWriter& r) { write_help(r, {"renew"}); });
  EXPECT_EQ(one.items[0].as_text(), "RENEW lease");
}

TEST(ProtocolPage, NamesEveryVerbAndEveryErrorCode) {
  const std::string page = protocol_page();
  for (const Verb& verb : all_verbs()) {
    EXPECT_THAT(page, HasSubstr("### " + std::string(verb.name) + "\n"));
    EXPECT_THAT(page, HasSubstr(std::string(verb.example)));
  }
  for (std::size_t i = 0; i < kErrorCodes; ++i) {
    EXPECT_THAT(page, HasSubstr("`-" + std::string(to_text(static_cast<ErrorCode>(i))) + "`"));
  }
}

// The examples are commands: each must parse.
TEST(ProtocolPage, EveryExampleIsAValidCommand) {
  for (const Verb& verb : all_verbs()) {
    CommandDecoder decoder;
    const std::string line = std::string(verb.example) + "\r\n";
    const DecodedCommand command = decoder.decode(line);
    ASSERT_EQ(command.status, DecodeStatus::kComplete);
    EXPECT_EQ(find_verb(command.args[0]), &verb);
    RequestParser parser;
    const ParsedRequest parsed = parser.parse(verb, command.args, Protocol::kResp3);
    EXPECT_FALSE(parsed.error) << verb.example << ": " << parsed.error->text;
  }
}

}  // namespace
}  // namespace pawl::wire
