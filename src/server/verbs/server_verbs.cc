#include "server/verbs/server_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "server/verbs/table.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using wire::ReplyWriter;

// --- COMMAND -------------------------------------------------------------------------------------

std::vector<std::string_view> flags_of(const Verb& verb) {
  using wire::Access;
  std::vector<std::string_view> flags;
  if (verb.access == Access::kNone) flags.push_back("no_auth");
  if (verb.access == Access::kUser || verb.access == Access::kObserve) flags.push_back("readonly");
  if (verb.access == Access::kUse) flags.push_back("write");
  if (verb.access == Access::kAdmin || verb.access == Access::kBackup) flags.push_back("admin");
  if (verb.while_loading) flags.push_back("loading");
  if (verb.takes_locks) flags.push_back("blocking");
  return flags;
}

// Ten elements, as in Redis 7. Lock names are not keys of a cluster: positions are 0.
void write_info(ReplyWriter& reply, const Verb& verb) {
  reply.array(10);
  reply.bulk(wire::lower(verb.name));
  reply.integer(verb.arity);
  const auto flags = flags_of(verb);
  reply.array(flags.size());
  for (const std::string_view flag : flags) reply.simple(flag);
  reply.integer(0);
  reply.integer(0);
  reply.integer(0);
  reply.array(1);
  reply.simple(fmt::format("@{}", verb.group));
  reply.array(0);
  reply.array(0);
  reply.array(0);
}

// redis-cli prints an argument's name as the hint, so the whole grammar is sent as one.
void write_arguments(ReplyWriter& reply, const Verb& verb) {
  reply.bulk("arguments");
  reply.array(1);
  reply.map(3);
  reply.field("name", verb.usage);
  reply.field("display_text", verb.usage);
  reply.field("type", "string");
}

void write_docs(ReplyWriter& reply, const Verb& verb) {
  reply.bulk(wire::lower(verb.name));
  reply.map(verb.usage.empty() ? 3 : 4);
  reply.field("summary", verb.summary);
  reply.field("since", verb.since);
  reply.field("group", verb.group);
  if (!verb.usage.empty()) write_arguments(reply, verb);
}

void write_all_docs(ReplyWriter& reply, std::span<const std::string_view> names) {
  std::vector<const Verb*> verbs;
  if (names.empty()) verbs.assign(all_verbs().begin(), all_verbs().end());
  for (const std::string_view name : names) {
    if (const Verb* verb = find_verb(name)) verbs.push_back(verb);
  }
  reply.map(verbs.size());
  for (const Verb* verb : verbs) write_docs(reply, *verb);
}

void write_all_infos(ReplyWriter& reply, std::span<const std::string_view> names) {
  if (names.empty()) {
    reply.array(all_verbs().size());
    for (const Verb* verb : all_verbs()) write_info(reply, *verb);
    return;
  }
  reply.array(names.size());
  for (const std::string_view name : names) {
    if (const Verb* verb = find_verb(name)) {
      write_info(reply, *verb);
    } else {
      reply.not_obtained();
    }
  }
}

Served describe_commands(Command& command, const CommandRequest& request) {
  ReplyWriter reply = command.reply();
  write_command_reply(reply, request);
  return command.done();
}

// --- INFO, TIME ----------------------------------------------------------------------------------

NoArguments parse_info(wire::ArgReader& in) {
  (void)in.rest();  // Sections: all are shown.
  return {};
}

Served info(Command& command, NoArguments) {
  command.reply().verbatim(
      info_text(command.services.status(command.now), command.services.telemetry));
  return command.done(command.services.core.last_batch());
}

Served show_time(Command& command, NoArguments) {
  const std::uint64_t wall = command.now.wall.value;
  ReplyWriter reply = command.reply();
  reply.array(2);
  reply.bulk(fmt::format_int(wall / 1000).str());
  reply.bulk(fmt::format_int(wall % 1000 * 1000).str());
  return command.done();
}

// --- CONFIG --------------------------------------------------------------------------------------

// redis-benchmark asks for these two before it starts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kRedisSettings{
    {{"save", ""}, {"appendonly", "yes"}}};

std::span<const std::string_view> parse_config(wire::ArgReader& in) {
  if (!in.option("GET")) in.refuse_rest();
  return in.rest();
}

Served get_config(Command& command, std::span<const std::string_view> patterns) {
  const auto matches = [&](std::string_view setting) {
    return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
      return pattern == "*" || wire::lower(pattern) == setting;
    });
  };
  std::vector<std::pair<std::string_view, std::string_view>> found;
  for (const auto& setting : kRedisSettings) {
    if (matches(setting.first)) found.push_back(setting);
  }
  ReplyWriter reply = command.reply();
  reply.map(found.size());
  for (const auto& [name, value] : found) reply.field(name, value);
  return command.done();
}

// --- HELP ----------------------------------------------------------------------------------------

std::string usage_line(const Verb& verb) {
  return verb.usage.empty() ? std::string(verb.name) : fmt::format("{} {}", verb.name, verb.usage);
}

std::string_view parse_help(wire::ArgReader& in) {
  std::string_view topic;
  if (in.more()) topic = in.any("HELP");
  in.refuse_rest();
  return topic;
}

Served help(Command& command, std::string_view topic) {
  ReplyWriter reply = command.reply();
  write_help(reply, topic);
  return command.done();
}

}  // namespace

CommandRequest parse_command(wire::ArgReader& in) {
  using Op = CommandRequest::Op;
  CommandRequest command;
  if (in.option("COUNT")) {
    command.op = Op::kCount;
  } else if (in.option("LIST")) {
    command.op = Op::kList;
  } else if (in.option("DOCS")) {
    command.op = Op::kDocs;
    command.names = in.rest();
  } else if (in.option("INFO")) {
    command.op = Op::kDetails;
    command.names = in.rest();
  }
  in.refuse_rest();
  return command;
}

void write_command_reply(ReplyWriter& reply, const CommandRequest& request) {
  using Op = CommandRequest::Op;
  switch (request.op) {
    case Op::kAll:
    case Op::kDetails:
      return write_all_infos(reply, request.names);
    case Op::kDocs:
      return write_all_docs(reply, request.names);
    case Op::kCount:
      return reply.integer(static_cast<std::int64_t>(all_verbs().size()));
    case Op::kList:
      reply.array(all_verbs().size());
      for (const Verb* verb : all_verbs()) reply.bulk(wire::lower(verb->name));
      return;
  }
}

void write_help(ReplyWriter& reply, std::string_view topic) {
  if (const Verb* verb = find_verb(topic)) {
    reply.array(4);
    reply.bulk(usage_line(*verb));
    reply.bulk(fmt::format("  {}", verb->summary));
    reply.bulk(fmt::format("  answers {}", verb->reply));
    reply.bulk(fmt::format("  example: {}", verb->example));
    return;
  }
  reply.array(all_verbs().size());
  for (const Verb* verb : all_verbs())
    reply.bulk(fmt::format("{}: {}", usage_line(*verb), verb->summary));
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kCommand{
    .name = "COMMAND",
    .arity = -1,
    .access = wire::Access::kObserve,
    .group = "server",
    .while_loading = true,
    .usage = "[COUNT | DOCS [name]... | INFO [name]... | LIST]",
    .summary = "about these commands, for clients and their hints",
    .reply = "as in Redis 7",
    .example = "COMMAND DOCS acquire",
    .handler = kHandler<parse_command, describe_commands>,
};

constinit const Verb kInfo{
    .name = "INFO",
    .arity = -1,
    .access = wire::Access::kObserve,
    .group = "server",
    .on_reserved = true,
    .while_loading = true,
    .usage = "[section]...",
    .summary = "facts about this pawld, as lines of key:value",
    .reply = "text",
    .example = "INFO",
    .handler = kHandler<parse_info, info>,
};

constinit const Verb kConfig{
    .name = "CONFIG",
    .arity = -3,
    .access = wire::Access::kObserve,
    .group = "server",
    .while_loading = true,
    .usage = "GET pattern [pattern]...",
    .summary = "settings that match, for clients that ask",
    .reply = "map of name to value",
    .example = "CONFIG GET appendonly",
    .handler = kHandler<parse_config, get_config>,
};

constinit const Verb kTime{
    .name = "TIME",
    .arity = 1,
    .access = wire::Access::kObserve,
    .group = "server",
    .while_loading = true,
    .summary = "the wall clock, for people",
    .reply = "array of two: Unix seconds, and microseconds",
    .example = "TIME",
    .handler = kHandler<parse_nothing, show_time>,
};

constinit const Verb kHelp{
    .name = "HELP",
    .arity = -1,
    .access = wire::Access::kObserve,
    .group = "server",
    .while_loading = true,
    .usage = "[command]",
    .summary = "the commands, or one of them",
    .reply = "array of lines",
    .example = "HELP ACQUIRE",
    .handler = kHandler<parse_help, help>,
};

}  // namespace pawl::server
