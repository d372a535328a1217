// What COMMAND and HELP answer, and the protocol page: all rendered from the verb table.
#pragma once

#include <string>
#include <string_view>

#include "wire/reply_writer.h"
#include "wire/request.h"

namespace pawl::wire {

// COMMAND [COUNT | DOCS [name…] | INFO [name…] | LIST], in the shapes of Redis 7 (redis-cli builds
// its hints from DOCS).
void write_command_reply(ReplyWriter& reply, const Command& command);

// HELP [verb]: an array of lines. An unknown topic gets the list too.
void write_help(ReplyWriter& reply, const Help& help);

// docs/reference/protocol.md, whole.
[[nodiscard]] std::string protocol_page();

}  // namespace pawl::wire
