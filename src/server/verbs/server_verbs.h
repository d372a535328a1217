// COMMAND, INFO, CONFIG, TIME and HELP: about this pawld and its commands.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kCommand;
extern const Verb kInfo;
extern const Verb kConfig;
extern const Verb kTime;
extern const Verb kHelp;

struct CommandRequest {
  enum class Op : std::uint8_t { kAll, kCount, kDocs, kDetails, kList };
  Op op = Op::kAll;
  std::span<const std::string_view> names;  // kDocs, kDetails (COMMAND INFO): empty = every command
};
[[nodiscard]] CommandRequest parse_command(wire::ArgReader& in);

// COMMAND [COUNT | DOCS [name…] | INFO [name…] | LIST], in the shapes of Redis 7 (redis-cli builds
// its hints from DOCS).
void write_command_reply(wire::ReplyWriter& reply, const CommandRequest& request);
// HELP [verb]: an array of lines. An unknown topic gets the list too.
void write_help(wire::ReplyWriter& reply, std::string_view topic);

}  // namespace pawl::server
