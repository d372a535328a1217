#include "server/verbs/table.h"

#include <fmt/format.h>

#include <array>

#include "server/verbs/ask_verb.h"
#include "server/verbs/connection_verbs.h"
#include "server/verbs/inspect_verbs.h"
#include "server/verbs/lease_verbs.h"
#include "server/verbs/observe_verbs.h"
#include "server/verbs/operator_verbs.h"
#include "server/verbs/server_verbs.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

// The verbs of the hot path come first: find_verb() looks from the front.
constexpr std::array kVerbs{
    &kAcquire, &kCancel,    &kRenew,  &kMRenew, &kRelease, &kInspect, &kLocks,    &kHistory,
    &kObserve, &kUnobserve, &kAsk,    &kBreak,  &kRaise,   &kBackup,  &kHandover, &kStatus,
    &kHello,   &kAuth,      &kPing,   &kEcho,   &kQuit,    &kReset,   &kSelect,   &kClient,
    &kCommand, &kInfo,      &kConfig, &kTime,   &kHelp,
};

}  // namespace

std::span<const Verb* const> all_verbs() {
  return kVerbs;
}

const Verb* find_verb(std::string_view name) {
  const std::size_t index = verb_index(name);
  return index == kVerbs.size() ? nullptr : kVerbs[index];
}

// A scan: lengths differ mostly. A hash would not be faster.
std::size_t verb_index(std::string_view name) {
  std::size_t index = 0;
  while (index < kVerbs.size() && !wire::is_word(name, kVerbs[index]->name)) ++index;
  return index;
}

wire::WireError unknown_command(std::span<const std::string_view> args) {
  const std::string_view name = args.empty() ? std::string_view{} : args.front();
  return {wire::ErrorCode::kErr,
          fmt::format("unknown command {}; COMMAND LIST names all", wire::shown(name))};
}

std::optional<wire::WireError> check_arguments(const Verb& verb,
                                               std::span<const std::string_view> args,
                                               const ParseContext& context) {
  wire::ArgReader in(verb.syntax(), args);
  if (in.ok()) verb.handler.check(in, context);
  return in.take_error();
}

}  // namespace pawl::server
