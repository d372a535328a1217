#include "server/verbs/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/verbs/lease_verbs.h"
#include "server/verbs/server_verbs.h"
#include "wire/acquire_options.h"
#include "wire/command_decoder.h"
#include "wire/reply_decoder.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using ::testing::HasSubstr;
using wire::DecodeStatus;
using wire::Protocol;
using wire::ReplyWriter;
using wire::Value;

using Op = CommandRequest::Op;

template <class Write>
Value documented(Protocol protocol, Write write) {
  std::string bytes;
  ReplyWriter reply(bytes, protocol);
  write(reply);
  wire::DecodedReply decoded = wire::ReplyDecoder().decode(bytes);
  EXPECT_EQ(decoded.status, DecodeStatus::kComplete) << decoded.message;
  EXPECT_EQ(decoded.consumed, bytes.size());
  return std::move(decoded.value);
}

TEST(Verbs, AreFoundInAnyCaseAndNothingElseIs) {
  for (const Verb* verb : all_verbs()) {
    EXPECT_EQ(find_verb(verb->name), verb);
    EXPECT_EQ(find_verb(wire::lower(verb->name)), verb);
    EXPECT_EQ(find_verb(std::string(verb->name) + "X"), nullptr);
    EXPECT_EQ(find_verb(verb->name.substr(0, verb->name.size() - 1)), nullptr);
  }
  EXPECT_EQ(find_verb(""), nullptr);
  EXPECT_EQ(find_verb("GET"), nullptr);
  EXPECT_EQ(find_verb("ACQ\x15IRE"), nullptr) << "folding case folds letters only";
}

TEST(AcquireOptions, AreAllInTheUsageOfAcquire) {
  for (const wire::AcquireOption& option : wire::acquire_options()) {
    const std::string words = std::string(option.word) +
                              (option.argument.empty() ? "" : " " + std::string(option.argument));
    EXPECT_THAT(std::string(kAcquire.usage), HasSubstr(words));
  }
}

TEST(AcquireOptions, HaveADescriptionWhereTheyAreMembersOfABody) {
  for (const wire::AcquireOption& option : wire::acquire_options())
    EXPECT_EQ(option.member.empty(), option.description.empty()) << option.word;
}

TEST(Verbs, ArityCountsTheNameAndNegativeMeansAtLeast) {
  EXPECT_TRUE(kRelease.syntax().accepts(2));
  EXPECT_FALSE(kRelease.syntax().accepts(1));
  EXPECT_FALSE(kRelease.syntax().accepts(3));
  EXPECT_TRUE(kMRenew.syntax().accepts(1025));
  EXPECT_FALSE(kMRenew.syntax().accepts(1));
}

TEST(Verbs, ReservedConnectionsRenewAndReleaseButAcquireNothing) {
  EXPECT_TRUE(kRenew.on_reserved && kMRenew.on_reserved);
  EXPECT_TRUE(kRelease.on_reserved && find_verb("PING")->on_reserved);
  EXPECT_FALSE(kAcquire.on_reserved || find_verb("LOCKS")->on_reserved);
}

TEST(Verbs, WhileLoadingOnlyStatusAndTheHandshakeAnswer) {
  for (const Verb* verb : all_verbs()) {
    const bool handshake = verb->group == "connection" || verb->group == "server";
    EXPECT_EQ(verb->while_loading, handshake || verb->name == "STATUS") << verb->name;
  }
}

TEST(CommandDocs, DocsAreAMapFromNameToFactsInBothVersions) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    const Value docs = documented(protocol, [](ReplyWriter& r) {
      write_command_reply(r, {Op::kDocs, {}});
    });
    EXPECT_EQ(docs.items.size(), 2 * all_verbs().size());
    const Value* acquire = docs.find("acquire");
    ASSERT_NE(acquire, nullptr);
    EXPECT_EQ(acquire->find("summary")->as_text(), kAcquire.summary);
    EXPECT_EQ(acquire->find("arguments")->items[0].find("name")->as_text(), kAcquire.usage);
    EXPECT_EQ(docs.find("status")->find("arguments"), nullptr);
  }
}

TEST(CommandDocs, NamedDocsLeaveOutWhatIsUnknown) {
  const std::vector<std::string_view> names{"ACQUIRE", "flushall"};
  const Value docs = documented(Protocol::kResp3, [&](ReplyWriter& r) {
    write_command_reply(r, {Op::kDocs, names});
  });
  EXPECT_EQ(docs.items.size(), 2u);
  const Value infos = documented(Protocol::kResp2, [&](ReplyWriter& r) {
    write_command_reply(r, {Op::kDetails, names});
  });
  ASSERT_EQ(infos.items.size(), 2u);
  EXPECT_EQ(infos.items[0].items.size(), 10u);
  EXPECT_EQ(infos.items[0].items[1].as_integer(), -4);
  EXPECT_TRUE(infos.items[1].is_null());
}

TEST(CommandDocs, CountListAndAllAgreeWithTheTable) {
  const auto ask = [](Op op) {
    return documented(Protocol::kResp3, [op](ReplyWriter& r) { write_command_reply(r, {op, {}}); });
  };
  EXPECT_EQ(ask(Op::kCount).as_integer(), static_cast<std::int64_t>(all_verbs().size()));
  EXPECT_EQ(ask(Op::kList).items.size(), all_verbs().size());
  EXPECT_EQ(ask(Op::kAll).items.size(), all_verbs().size());
}

TEST(CommandDocs, HelpKnowsEveryVerb) {
  const Value list = documented(Protocol::kResp2, [](ReplyWriter& r) { write_help(r, ""); });
  EXPECT_EQ(list.items.size(), all_verbs().size());
  const Value one = documented(Protocol::kResp2, [](ReplyWriter& r) { write_help(r, "renew"); });
  EXPECT_EQ(one.items[0].as_text(), "RENEW lease [ASKS]");
}

TEST(ProtocolPage, NamesEveryVerbAndEveryErrorCode) {
  const std::string page = protocol_page();
  for (const Verb* verb : all_verbs()) {
    EXPECT_THAT(page, HasSubstr("### " + std::string(verb->name) + "\n"));
    EXPECT_THAT(page, HasSubstr(std::string(verb->example)));
  }
  for (std::size_t i = 0; i < wire::kErrorCodes; ++i) {
    EXPECT_THAT(page,
                HasSubstr("`-" + std::string(to_text(static_cast<wire::ErrorCode>(i))) + "`"));
  }
}

// The examples are commands: each must parse.
TEST(ProtocolPage, EveryExampleIsAValidCommand) {
  for (const Verb* verb : all_verbs()) {
    wire::CommandDecoder decoder;
    const std::string line = std::string(verb->example) + "\r\n";
    const wire::DecodedCommand command = decoder.decode(line);
    ASSERT_EQ(command.status, DecodeStatus::kComplete);
    EXPECT_EQ(find_verb(command.args[0]), verb);
    const auto error = check_arguments(*verb, command.args, {.protocol = Protocol::kResp3});
    EXPECT_FALSE(error) << verb->example << ": " << error->text;
  }
}

// What a new verb must not forget.
TEST(Verbs, EveryRowIsComplete) {
  for (const Verb* verb : all_verbs()) {
    for (const std::string_view text : {verb->group, verb->summary, verb->reply, verb->example})
      EXPECT_FALSE(text.empty()) << verb->name;
    EXPECT_NE(verb->handler.check, nullptr) << verb->name;
    EXPECT_NE(verb->handler.serve, nullptr) << verb->name;
    if (verb->http == nullptr) continue;
    EXPECT_TRUE(verb->http->path.starts_with("/v1/")) << verb->name;
    EXPECT_FALSE(verb->http->answers.empty()) << verb->name;
  }
}

}  // namespace
}  // namespace pawl::server
