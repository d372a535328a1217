#include "tests/fuzz/commands.h"

#include "base/hex.h"

namespace pawl::fuzz {
namespace {

using Args = std::vector<std::string>;

// Few names, so that clients meet; short times, so that things end.
const std::array<std::string, 4> kLocks{"a", "b", "a/c", "d"};
const std::array<std::string, 3> kPrefixes{"", "a", "a/"};
const std::array<std::string, 4> kRequests{"request-number-one-0000", "request-number-two-0000",
                                           "request-number-three-00", "request-number-four-000"};
const std::array<std::string, 4> kTtls{"100", "150", "400", "1000"};
const std::array<std::string, 4> kWaits{"1", "50", "200", "700"};

std::string lease(Script& script, const Known& known) {
  const std::size_t choice = script.byte();
  if (known.leases.empty() || choice % 8 == 7) return std::string(32, '0');
  return to_hex(known.leases[choice % known.leases.size()]);
}

std::string token(Script& script, const Known& known) {
  const std::size_t choice = script.byte();
  if (known.tokens.empty() || choice % 8 == 7) return std::to_string(1 + choice);
  return std::to_string(known.tokens[choice % known.tokens.size()].value);
}

Spoken acquire(Script& script) {
  const std::uint8_t shape = script.byte(), extras = script.byte();
  const std::size_t first = script.below(kLocks.size());
  Spoken spoken{{"ACQUIRE", kLocks[first]}, {"ACQUIRE", "", ""}};
  Args& args = spoken.args;
  const auto add = [&](std::initializer_list<std::string> more) { args.insert(args.end(), more); };
  if ((shape & 1) != 0)
    add({"AND", kLocks[(first + 1 + script.below(kLocks.size() - 1)) % kLocks.size()]});
  add({"TTL", script.one_of(kTtls)});
  if ((shape & 2) != 0) add({"WAIT", script.one_of(kWaits)});
  if ((shape & 4) != 0) add({"ASYNC"});
  if ((shape & 24) == 8) add({"SHARED"});
  if ((shape & 24) == 16) add({"LIMIT", std::to_string(1 + script.below(3))});
  if ((shape & 36) != 0) {
    spoken.sent.request = script.one_of(kRequests);
    add({"REQUEST", spoken.sent.request});
  }
  if ((extras & 3) == 3) add({"DELAY", "120"});
  if ((extras & 12) == 12) add({"MAXHOLD", "1000"});
  if ((extras & 16) != 0) add({"OWNER", "o@h:1"});
  if ((extras & 32) != 0) add({"META", "k", "v"});
  return spoken;
}

Args mrenew(Script& script, const Known& known) {
  Args args{"MRENEW"};
  for (std::size_t left = 1 + script.below(3); left > 0; --left)
    args.push_back(lease(script, known));
  return args;
}

Args observe(Script& script, const Known& known) {
  Args args{"OBSERVE", script.one_of(kPrefixes)};
  const std::size_t from = script.byte();
  if (!known.events.empty() && from % 2 == 1) {
    args.insert(args.end(), {"FROM", known.events[from % known.events.size()]});
  }
  return args;
}

Args break_lock(Script& script, const Known& known) {
  Args args{"BREAK", script.one_of(kLocks), "TOKEN", token(script, known)};
  if (script.below(2) == 1) args.emplace_back("NOW");
  args.insert(args.end(), {"REASON", "why not"});
  return args;
}

// The rest: short, and about nothing that was learnt.
const std::array<Args, 16> kPlain{{
    {"HELLO", "3"},
    {"HELLO", "2"},
    {"PING"},
    {"STATUS"},
    {"LOCKS", "COUNT", "2"},
    {"INFO"},
    {"CLIENT", "LIST"},
    {"TIME"},
    {"COMMAND", "COUNT"},
    {"NOSUCHVERB", "x"},
    {"ACQUIRE", "a"},
    {"RENEW", "not-a-lease"},
    {"SELECT", "0"},
    {"RESET"},
    {"HELLO", "3"},
    {"QUIT"},
}};

Spoken plain(Args args) {
  Spoken spoken{std::move(args), {}};
  spoken.sent.verb = spoken.args.front();
  return spoken;
}

}  // namespace

Spoken speak(Script& script, const Known& known) {
  switch (script.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return acquire(script);
    case 4:
      return plain({"CANCEL", script.one_of(kRequests)});
    case 5:
      return plain({"RENEW", lease(script, known)});
    case 6:
      return plain(mrenew(script, known));
    case 7:
    case 8:
      return plain({"RELEASE", lease(script, known)});
    case 9:
      return plain({"INSPECT", script.one_of(kLocks)});
    case 10:
      return plain({"HISTORY", script.one_of(kLocks), "COUNT", "3"});
    case 11:
      return plain(observe(script, known));
    case 12:
      return plain({"UNOBSERVE", script.one_of(kPrefixes)});
    case 13:
      return plain(break_lock(script, known));
    case 14: {
      Spoken spoken = plain({"ECHO", std::to_string(script.byte())});
      spoken.sent.text = spoken.args.back();
      return spoken;
    }
    default:
      if (script.below(16) == 0) return plain({"RAISE", token(script, known), "REASON", "why not"});
      return plain(script.one_of(kPlain));
  }
}

}  // namespace pawl::fuzz
