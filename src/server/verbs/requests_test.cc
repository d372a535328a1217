// What the parsers of the verbs accept, and how they explain what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "base/hex.h"
#include "server/verbs/connection_verbs.h"
#include "server/verbs/inspect_verbs.h"
#include "server/verbs/lease_verbs.h"
#include "server/verbs/observe_verbs.h"
#include "server/verbs/operator_verbs.h"
#include "server/verbs/server_verbs.h"
#include "server/verbs/table.h"
#include "wire/acquire_options.h"

namespace pawl::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using wire::ArgReader;
using wire::Protocol;

const std::string kLease = "00000000000000010000000000000002";
const std::string kId = "abcdefghijklmnopqrst_-";  // 22 characters, the shortest
const std::string kTokenMax = "9007199254740991";

template <class T, std::size_t kCapacity>
std::vector<T> listed(const ShortList<T, kCapacity>& list) {
  return {list.begin(), list.end()};
}

// Keeps the arguments alive as long as the request that points into them.
class RequestTest : public ::testing::Test {
 protected:
  std::span<const std::string_view> keep(std::vector<std::string> args) {
    kept_.push_back(std::move(args));
    return views_.emplace_back(kept_.back().begin(), kept_.back().end());
  }
  // "OK", or the error line.
  std::string answer(std::vector<std::string> words, Protocol protocol = Protocol::kResp3,
                     Millis ttl_max = limits::kTtlMaxDefault) {
    const auto args = keep(std::move(words));
    const Verb* verb = find_verb(args[0]);
    const auto error =
        verb == nullptr ? unknown_command(args)
                        : check_arguments(*verb, args, {.ttl_max = ttl_max, .protocol = protocol});
    return error ? std::string(to_text(error->code)) + " " + error->text : "OK";
  }
  // What `parse` makes of the arguments.
  template <class Parse>
  auto get(Parse parse, std::vector<std::string> words) {
    const auto args = keep(std::move(words));
    ArgReader in(find_verb(args[0])->syntax(), args);
    const auto request = parse(in);
    const auto error = in.take_error();
    EXPECT_FALSE(error) << error->text;
    return request;
  }
  AcquireSpec get_acquire(std::vector<std::string> words) {
    return get(
        [](ArgReader& in) {
          AcquireSpec spec;
          wire::parse_acquire(in, spec, limits::kTtlMaxDefault, Protocol::kResp3);
          return spec;
        },
        std::move(words));
  }
  // ACQUIRE with a valid beginning and these options behind it.
  std::string acquire(std::vector<std::string> options, Protocol protocol = Protocol::kResp3) {
    std::vector<std::string> args{"ACQUIRE", "a", "TTL", "1000"};
    args.insert(args.end(), options.begin(), options.end());
    return answer(std::move(args), protocol);
  }

  std::deque<std::vector<std::string>> kept_;
  std::deque<std::vector<std::string_view>> views_;
};

TEST_F(RequestTest, AcquireTakesItsOptionsInAnyOrderAndAnyCase) {
  const auto spec =
      get_acquire({"acquire",    "a/b",     "and",   "c",    "META",  "k",       "v",    "owner",
                   "batch@host", "MaxHold", "60000", "WAIT", "0",     "request", kId,    "ttl",
                   "15000",      "Meta",    "k2",    "",     "async", "DELAY",   "60000"});
  EXPECT_THAT(listed(spec.locks), ElementsAre("a/b", "c"));
  EXPECT_EQ(spec.terms.mode, Mode::kExclusive);
  EXPECT_EQ(spec.terms.limit, 1u);
  EXPECT_EQ(spec.terms.ttl, Millis(15000));
  EXPECT_EQ(spec.wait, Millis(0));
  EXPECT_TRUE(spec.async);
  EXPECT_EQ(spec.owner, "batch@host");
  EXPECT_EQ(spec.request, kId);
  EXPECT_EQ(spec.terms.delay, Millis(60000));
  EXPECT_EQ(spec.terms.max_hold, Millis(60000));
  EXPECT_THAT(listed(spec.meta), ElementsAre(MetaPair{"k", "v"}, MetaPair{"k2", ""}));
}

TEST_F(RequestTest, ALockMayBeNamedLikeAnOption) {
  const auto spec = get_acquire({"ACQUIRE", "TTL", "AND", "AND", "TTL", "100"});
  EXPECT_THAT(listed(spec.locks), ElementsAre("TTL", "AND"));
}

// Hard case 17.
TEST_F(RequestTest, NumbersOutOfRangeAreRefusedWithTheirRange) {
  struct Row {
    std::string option;
    std::string range;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  };
  const std::vector<std::string> never{"",
                                       "-1",
                                       "+1000",
                                       " 1000",
                                       "1000 ",
                                       "1e3",
                                       "0x10",
                                       "1.5",
                                       "ten",
                                       "18446744073709551616",
                                       "9999999999999999999"};
  const std::vector<Row> rows{
      {"WAIT", "WAIT must be 0 to 3600000 ms", {"0", "1", "3600000"}, {"3600001"}},
      {"DELAY", "DELAY must be 0 to 60000 ms", {"0", "60000"}, {"60001"}},
      {"LIMIT", "LIMIT must be 1 to 1024", {"1", "1024"}, {"0", "1025"}},
      {"MAXHOLD", "MAXHOLD must be ", {"0", "1000", "31536000000"}, {"99", "999", "31536000001"}},
  };
  for (const Row& row : rows) {
    for (const auto& good : row.good)
      EXPECT_EQ(acquire({row.option, good}), "OK") << row.option << good;
    for (const auto& bad : row.bad)
      EXPECT_THAT(acquire({row.option, bad}), StartsWith("ERR " + row.range)) << bad;
    for (const auto& bad : never)
      EXPECT_THAT(acquire({row.option, bad}), StartsWith("ERR " + row.range)) << bad;
  }
  for (const auto& good : {"100", "600000"}) EXPECT_EQ(answer({"ACQUIRE", "a", "TTL", good}), "OK");
  for (const auto& bad : {"0", "99", "600001", "5"}) {
    EXPECT_EQ(answer({"ACQUIRE", "a", "TTL", bad}),
              std::string("ERR TTL must be 100 to 600000 ms, got ") + bad);
  }
  for (const auto& bad : never) {
    EXPECT_THAT(answer({"ACQUIRE", "a", "TTL", bad}),
                StartsWith("ERR TTL must be 100 to 600000 ms, got '"))
        << bad;
  }
}

TEST_F(RequestTest, TheGreatestTtlIsASetting) {
  const Millis most = limits::kTtlMaxCeiling;
  EXPECT_EQ(answer({"ACQUIRE", "a", "TTL", "86400000"}, Protocol::kResp2, most), "OK");
  EXPECT_EQ(answer({"ACQUIRE", "a", "TTL", "86400001"}, Protocol::kResp2, most),
            "ERR TTL must be 100 to 86400000 ms, got 86400001");
}

TEST_F(RequestTest, LockNamesAreOneTo512BytesOfUtf8WithoutControlCharacters) {
  const std::vector<std::string> good{"a",       std::string(512, 'x'), "späť/☂/😀", " ", "a\\b\"c",
                                      "\xC2\xA0"};
  for (const auto& name : good) EXPECT_EQ(answer({"INSPECT", name}), "OK") << name;
  EXPECT_EQ(answer({"INSPECT", ""}), "ERR a lock name must be 1 to 512 bytes, got 0");
  EXPECT_EQ(answer({"INSPECT", std::string(513, 'x')}),
            "TOOLONG a lock name takes at most 512 bytes, got 513");
  const std::vector<std::string> bad{
      "a\nb",         std::string("a\0b", 3), "\x7F",     "\xC2\x85",         "\x80",
      "\xC0\xAF",     "\xE0\x80\xAF",         "\xC3",     "\xE2\x82",         "\xED\xA0\x80",
      "\xF0\x9F\x98", "\xF4\x90\x80\x80",     "\xF8\x88", "\xF0\x80\x80\x80", "a\xFF"};
  for (const auto& name : bad) {
    EXPECT_EQ(answer({"INSPECT", name}), "ERR a lock name must be UTF-8 without control characters")
        << name;
  }
}

TEST_F(RequestTest, AndTakesSixteenDifferentExclusiveLocks) {
  std::vector<std::string> args{"ACQUIRE", "lock-0"};
  for (int i = 1; i < 16; ++i) args.insert(args.end(), {"AND", "lock-" + std::to_string(i)});
  auto more = args;
  args.insert(args.end(), {"TTL", "1000"});
  EXPECT_EQ(answer(args), "OK");
  more.insert(more.end(), {"AND", "lock-16", "TTL", "1000"});
  EXPECT_EQ(answer(more), "TOOLONG AND takes at most 16 locks in all");
  EXPECT_EQ(answer({"ACQUIRE", "a", "AND", "b", "AND", "a", "TTL", "1000"}),
            "ERR AND names a lock twice");
  EXPECT_THAT(answer({"ACQUIRE", "a", "AND", "b", "TTL", "1000", "SHARED"}),
              HasSubstr("excludes SHARED and LIMIT"));
  EXPECT_THAT(answer({"ACQUIRE", "a", "AND", "b", "TTL", "1000", "LIMIT", "1"}),
              HasSubstr("excludes SHARED"));
  EXPECT_THAT(answer({"ACQUIRE", "a", "TTL", "1000", "AND", "b"}),
              StartsWith("ERR did not expect 'AND'"));
}

TEST_F(RequestTest, OptionsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(acquire({"SHARED", "LIMIT", "2"}), "ERR SHARED and LIMIT exclude each other");
  EXPECT_EQ(acquire({"ASYNC", "REQUEST", kId}), "ERR ASYNC needs WAIT ms");
  EXPECT_EQ(acquire({"WAIT", "10", "ASYNC"}), "ERR ASYNC needs REQUEST id");
  EXPECT_EQ(acquire({"WAIT", "10", "ASYNC", "REQUEST", kId}), "OK");
  EXPECT_EQ(acquire({"WAIT", "10", "ASYNC", "REQUEST", kId}, Protocol::kResp2),
            "ERR ASYNC needs RESP3: send HELLO 3 first");
  EXPECT_EQ(acquire({"MAXHOLD", "999"}),
            "ERR MAXHOLD must be 0 (no cap), or 1000 (the TTL) to 31536000000 ms, got 999");
}

TEST_F(RequestTest, EachOptionIsGivenAtMostOnce) {
  const std::vector<std::vector<std::string>> twice{{"TTL", "1000"},
                                                    {"WAIT", "1", "wait", "1"},
                                                    {"SHARED", "SHARED"},
                                                    {"LIMIT", "1", "LIMIT", "1"},
                                                    {"OWNER", "x", "OWNER", "x"},
                                                    {"REQUEST", kId, "REQUEST", kId},
                                                    {"DELAY", "1", "DELAY", "1"}};
  for (const auto& options : twice)
    EXPECT_THAT(acquire(options), HasSubstr("is given twice")) << options[0];
}

TEST_F(RequestTest, MissingAndUnknownWordsNameTheUsage) {
  EXPECT_THAT(acquire({"WAIT"}), StartsWith("ERR WAIT needs a value; usage: ACQUIRE lock"));
  EXPECT_THAT(acquire({"META", "k"}), StartsWith("ERR META value needs a value"));
  EXPECT_THAT(acquire({"WIAT", "5"}), StartsWith("ERR did not expect 'WIAT'; usage: ACQUIRE lock"));
  EXPECT_EQ(answer({"ACQUIRE", "a", "OWNER", "x"}), "ERR ACQUIRE needs TTL ms");
  EXPECT_THAT(answer({"ACQUIRE", "a"}),
              StartsWith("ERR wrong number of arguments for ACQUIRE; usage: ACQUIRE"));
  EXPECT_EQ(answer({"STATUS", "x"}), "ERR wrong number of arguments for STATUS; usage: STATUS");
  EXPECT_EQ(answer({"FLUSH\r\nALL"}), "ERR unknown command 'FLUSH??ALL'; COMMAND LIST names all");
  EXPECT_EQ(answer({std::string(100, 'x')}),
            "ERR unknown command '" + std::string(32, 'x') + "...'; COMMAND LIST names all");
}

TEST_F(RequestTest, OwnerMetaAndReasonHaveTheirLimits) {
  EXPECT_EQ(acquire({"OWNER", std::string(128, 'x')}), "OK");
  EXPECT_EQ(acquire({"OWNER", std::string(129, 'x')}),
            "TOOLONG OWNER takes at most 128 bytes, got 129");
  EXPECT_EQ(acquire({"OWNER", ""}), "ERR OWNER must be 1 to 128 bytes, got 0");
  EXPECT_EQ(acquire({"OWNER", "a\tb"}), "ERR OWNER must be UTF-8 without control characters");

  EXPECT_EQ(acquire({"META", "k", std::string(1023, 'v')}), "OK");
  EXPECT_EQ(acquire({"META", "k", std::string(1024, 'v')}),
            "TOOLONG META takes at most 1024 bytes in all");
  EXPECT_EQ(acquire({"META", "k", "v", "META", "j", std::string(1022, 'v')}),
            "TOOLONG META takes at most 1024 bytes in all");
  EXPECT_EQ(acquire({"META", "k", std::string(1025, 'v')}),
            "TOOLONG META value takes at most 1024 bytes, got 1025");
  EXPECT_EQ(acquire({"META", "k", "1", "META", "k", "2"}), "ERR META names a key twice");
  std::vector<std::string> pairs;
  for (char c = 'a'; c < 'i'; ++c) pairs.insert(pairs.end(), {"META", std::string(1, c), "v"});
  EXPECT_EQ(acquire(pairs), "OK");
  pairs.insert(pairs.end(), {"META", "z", "v"});
  EXPECT_EQ(acquire(pairs), "TOOLONG META takes at most 8 pairs");

  EXPECT_EQ(answer({"BREAK", "a", "TOKEN", "1", "REASON", std::string(256, 'x')}), "OK");
  EXPECT_THAT(answer({"BREAK", "a", "TOKEN", "1", "REASON", std::string(257, 'x')}),
              StartsWith("TOOLONG REASON"));
}

TEST_F(RequestTest, RequestIdsHaveTheirLengthAndLettersAndAreNotRepeatedInErrors) {
  EXPECT_EQ(answer({"CANCEL", kId}), "OK");
  EXPECT_EQ(answer({"CANCEL", std::string(64, 'Z')}), "OK");
  EXPECT_EQ(answer({"CANCEL", std::string(65, 'Z')}),
            "TOOLONG a request id takes at most 64 characters, got 65");
  EXPECT_EQ(answer({"CANCEL", std::string(21, 'Z')}),
            "ERR a request id must be 22 to 64 of A-Z a-z 0-9 _ -");
  EXPECT_EQ(answer({"CANCEL", kId + "+"}), "ERR a request id must be 22 to 64 of A-Z a-z 0-9 _ -");
  EXPECT_EQ(acquire({"REQUEST", ""}), "ERR a request id must be 22 to 64 of A-Z a-z 0-9 _ -");
}

// Hard case 15.
TEST_F(RequestTest, ABackupGoesToAnAbsolutePath) {
  EXPECT_EQ(get(parse_backup, {"BACKUP", "/var/backups/pawl"}), "/var/backups/pawl");
  EXPECT_THAT(answer({"BACKUP", "backups/pawl"}), StartsWith("ERR dir must be absolute"));
  EXPECT_THAT(answer({"BACKUP", ""}), StartsWith("ERR dir must be 1 to 1024 bytes"));
  EXPECT_THAT(answer({"BACKUP", "/" + std::string(1024, 'x')}),
              StartsWith("TOOLONG dir takes at most 1024 bytes"));
  EXPECT_THAT(answer({"BACKUP", "/a\nb"}),
              StartsWith("ERR dir must be UTF-8 without control characters"));
  EXPECT_THAT(answer({"BACKUP", "/a", "/b"}), StartsWith("ERR"));
}

TEST_F(RequestTest, TokensAreCanonicalAndExactAsDoubles) {
  EXPECT_EQ(get(parse_raise, {"RAISE", kTokenMax, "REASON", "x"}).token, Token{limits::kTokenMax});
  EXPECT_EQ(get(parse_raise, {"RAISE", "1", "REASON", "x"}).token, Token{1});
  for (const auto& bad :
       {"0", "", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "9007199254740992", "9999999999999999",
        "10000000000000000", "18446744073709551617", "0x1", "１"}) {
    EXPECT_THAT(answer({"RAISE", bad, "REASON", "x"}),
                StartsWith("ERR RAISE must be a token, 1 to 9007199254740991"))
        << bad;
    EXPECT_THAT(answer({"BREAK", "a", "TOKEN", bad, "REASON", "x"}),
                StartsWith("ERR TOKEN must be a token"))
        << bad;
  }
}

TEST_F(RequestTest, ALeaseIs32LowercaseHexDigits) {
  EXPECT_EQ(answer({"RENEW", kLease}), "OK");
  EXPECT_EQ(answer({"release", kLease}), "OK");
  for (const auto& bad : {std::string(), kLease.substr(1), kLease + "0", "A" + kLease.substr(1),
                          "g" + kLease.substr(1)}) {
    EXPECT_EQ(answer({"RENEW", bad}), "ERR a lease is 32 lowercase hex digits") << bad;
    EXPECT_EQ(answer({"RELEASE", bad}), "ERR a lease is 32 lowercase hex digits") << bad;
  }
}

TEST_F(RequestTest, MRenewTakesUpTo1024LeasesInOrderOrNoneOfThem) {
  EXPECT_THAT(get(parse_mrenew, {"MRENEW", kLease, to_hex(LeaseId{3, 4}), kLease}).leases,
              ElementsAre(kLease, to_hex(LeaseId{3, 4}), kLease));
  std::vector<std::string> args(1025, kLease);
  args[0] = "MRENEW";
  EXPECT_EQ(get(parse_mrenew, args).leases.size(), 1024u);
  args.push_back(kLease);
  EXPECT_EQ(answer(args), "TOOLONG MRENEW takes at most 1024 leases, got 1025");
  EXPECT_EQ(answer({"MRENEW", kLease, "nonsense", kLease}),
            "ERR a lease is 32 lowercase hex digits");
  EXPECT_THAT(answer({"MRENEW"}), StartsWith("ERR wrong number of arguments"));
}

TEST_F(RequestTest, LocksAndHistoryHaveDefaultsAndBounds) {
  const auto all = get(parse_locks, {"LOCKS"});
  EXPECT_EQ(all.prefix, "");
  EXPECT_EQ(all.cursor, "0");
  EXPECT_EQ(all.count, 100u);
  const auto page = get(parse_locks, {"LOCKS", "COUNT", "1000", "CURSOR", "42", "PREFIX", "a/"});
  EXPECT_EQ(page.prefix, "a/");
  EXPECT_EQ(page.cursor, "42");
  EXPECT_EQ(page.count, 1000u);
  EXPECT_EQ(answer({"LOCKS", "COUNT", "1001"}), "ERR COUNT must be 1 to 1000, got 1001");
  EXPECT_EQ(answer({"LOCKS", "COUNT", "0"}), "ERR COUNT must be 1 to 1000, got 0");
  EXPECT_EQ(get(parse_history, {"HISTORY", "a", "COUNT", "7"}).count, 7u);
  EXPECT_EQ(get(parse_history, {"HISTORY", "a"}).count, 100u);
  EXPECT_THAT(answer({"HISTORY", "a", "LAST", "7"}), StartsWith("ERR did not expect 'LAST'"));
}

TEST_F(RequestTest, ObserveTakesAPrefixAndWhatWasSeenLast) {
  EXPECT_EQ(get(parse_observe, {"OBSERVE", ""}).prefix, "");
  EXPECT_EQ(get(parse_observe, {"OBSERVE", "FROM"}).prefix, "FROM");
  const auto resumed = get(parse_observe, {"observe", "a/", "from", "00000000000000ab-65536"});
  EXPECT_EQ(resumed.prefix, "a/");
  EXPECT_EQ(resumed.from, (wire::EventId{Incarnation{0xab}, 65536}));
  EXPECT_EQ(answer({"UNOBSERVE", "a/"}), "OK");
  EXPECT_EQ(answer({"OBSERVE", "a", "FROM", "65536"}),
            "ERR FROM must be an event id from OBSERVE or a push, got '65536'");
  EXPECT_THAT(answer({"OBSERVE", "a", "FROM"}), StartsWith("ERR FROM needs a value"));
  EXPECT_THAT(answer({"OBSERVE", "a", "b"}), StartsWith("ERR did not expect 'b'"));
  EXPECT_THAT(answer({"OBSERVE", std::string(513, 'a')}), StartsWith("TOOLONG"));
  EXPECT_THAT(answer({"UNOBSERVE"}), StartsWith("ERR wrong number of arguments"));
}

TEST_F(RequestTest, BreakNamesTheTokenAndAReason) {
  const auto soft = get(parse_break, {"BREAK", "a", "TOKEN", "34", "REASON", "host is gone"});
  EXPECT_EQ(soft.lock, "a");
  EXPECT_EQ(soft.token, Token{34});
  EXPECT_FALSE(soft.now);
  EXPECT_EQ(soft.reason, "host is gone");
  EXPECT_TRUE(get(parse_break, {"BREAK", "a", "REASON", "x", "now", "TOKEN", "34"}).now);
  EXPECT_THAT(answer({"BREAK", "a", "NOW", "REASON", "x"}),
              StartsWith("ERR wrong number of arguments"));
  EXPECT_EQ(answer({"BREAK", "a", "TOKEN", "1", "NOW", "REASON"}),
            "ERR REASON needs a value; usage: BREAK lock TOKEN t [NOW] REASON text");
  EXPECT_THAT(answer({"BREAK", "a", "REASON", "x", "NOW", "TOKENS"}),
              StartsWith("ERR did not expect 'TOKENS'"));
}

TEST_F(RequestTest, TheHandshakesOfOrdinaryClientsAreUnderstood) {
  EXPECT_FALSE(get(parse_hello, {"hello"}).protocol);
  EXPECT_EQ(get(parse_hello, {"HELLO", "3"}).protocol, Protocol::kResp3);
  const auto hello = get(parse_hello, {"HELLO", "2", "SETNAME", "me", "AUTH", "batch", "secret"});
  EXPECT_EQ(hello.protocol, Protocol::kResp2);
  EXPECT_EQ(hello.credentials->user, "batch");
  EXPECT_EQ(hello.credentials->password, "secret");
  EXPECT_EQ(hello.name, "me");
  EXPECT_EQ(answer({"HELLO", "4"}), "NOPROTO unsupported protocol version '4': 2 or 3");

  EXPECT_EQ(get(parse_auth, {"AUTH", "secret"}).user, "");
  EXPECT_EQ(get(parse_auth, {"AUTH", "batch", "secret"}).password, "secret");
  EXPECT_EQ(answer({"AUTH", "a", "b", "c"}), "ERR AUTH takes [user] password");

  EXPECT_EQ(get(parse_client, {"client", "SETINFO", "LIB-NAME", "ioredis"}).text, "ioredis");
  EXPECT_EQ(get(parse_client, {"CLIENT", "setinfo", "lib-ver", ""}).attribute, "lib-ver");
  EXPECT_EQ(get(parse_client, {"CLIENT", "SETNAME", ""}).op, ClientRequest::Op::kSetName);
  EXPECT_EQ(get(parse_client, {"CLIENT", "LIST"}).op, ClientRequest::Op::kList);
  EXPECT_EQ(answer({"CLIENT", "SETNAME", "a b"}), "ERR a connection name has no spaces");
  EXPECT_THAT(answer({"CLIENT", "MAINT_NOTIFICATIONS", "ON"}),
              StartsWith("ERR did not expect 'MAINT_NOTIFICATIONS'"));

  EXPECT_EQ(answer({"CONFIG", "GET", "save", "appendonly"}), "OK");
  EXPECT_THAT(answer({"CONFIG", "SET", "save", ""}), StartsWith("ERR did not expect 'SET'"));
  EXPECT_EQ(get(parse_command, {"COMMAND"}).op, CommandRequest::Op::kAll);
  EXPECT_THAT(get(parse_command, {"COMMAND", "docs", "acquire"}).names, ElementsAre("acquire"));
  EXPECT_EQ(answer({"SELECT", "0"}), "OK");
  EXPECT_EQ(answer({"SELECT", "1"}), "ERR SELECT takes 0: there is one database");
  EXPECT_EQ(answer({"PING"}), "OK");
  EXPECT_EQ(answer({"PING", "x"}), "OK");
  EXPECT_EQ(answer({"ECHO", "x"}), "OK");
  EXPECT_EQ(answer({"HELP", "acquire"}), "OK");
  for (const auto& word : {"QUIT", "RESET", "INFO", "TIME", "STATUS"})
    EXPECT_EQ(answer({word}), "OK") << word;
}

}  // namespace
}  // namespace pawl::server
