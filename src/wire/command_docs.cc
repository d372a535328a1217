#include "wire/command_docs.h"

#include <fmt/format.h>

#include <vector>

#include "wire/text.h"

namespace pawl::wire {
namespace {

std::vector<std::string_view> flags(const Verb& verb) {
  std::vector<std::string_view> flags;
  if (verb.access == Access::kNone) flags.push_back("no_auth");
  if (verb.access == Access::kUser || verb.access == Access::kObserve) flags.push_back("readonly");
  if (verb.access == Access::kUse) flags.push_back("write");
  if (verb.access == Access::kAdmin || verb.access == Access::kBackup) flags.push_back("admin");
  if (verb.while_loading) flags.push_back("loading");
  if (verb.id == VerbId::kAcquire) flags.push_back("blocking");
  return flags;
}

// Ten elements, as Redis 7 answers. Lock names are not keys of a cluster: positions are 0.
void write_info(ReplyWriter& reply, const Verb& verb) {
  reply.array(10);
  reply.bulk(lower(verb.name));
  reply.integer(verb.arity);
  const auto words = flags(verb);
  reply.array(words.size());
  for (const std::string_view word : words) reply.simple(word);
  reply.integer(0);
  reply.integer(0);
  reply.integer(0);
  reply.array(1);
  reply.simple(fmt::format("@{}", verb.group));
  reply.array(0);
  reply.array(0);
  reply.array(0);
}

// redis-cli prints an argument's name as the hint, so the whole grammar travels as one.
void write_arguments(ReplyWriter& reply, const Verb& verb) {
  reply.bulk("arguments");
  reply.array(1);
  reply.map(3);
  reply.field("name", verb.usage);
  reply.field("display_text", verb.usage);
  reply.field("type", "string");
}

void write_docs(ReplyWriter& reply, const Verb& verb) {
  reply.bulk(lower(verb.name));
  reply.map(verb.usage.empty() ? 3 : 4);
  reply.field("summary", verb.summary);
  reply.field("since", verb.since);
  reply.field("group", verb.group);
  if (!verb.usage.empty()) write_arguments(reply, verb);
}

std::vector<const Verb*> known(std::span<const std::string_view> names) {
  std::vector<const Verb*> verbs;
  if (names.empty()) {
    for (const Verb& verb : all_verbs()) verbs.push_back(&verb);
  }
  for (const std::string_view name : names) {
    if (const Verb* verb = find_verb(name)) verbs.push_back(verb);
  }
  return verbs;
}

void write_all_docs(ReplyWriter& reply, std::span<const std::string_view> names) {
  const auto verbs = known(names);
  reply.map(verbs.size());
  for (const Verb* verb : verbs) write_docs(reply, *verb);
}

void write_all_infos(ReplyWriter& reply, std::span<const std::string_view> names) {
  if (names.empty()) {
    reply.array(all_verbs().size());
    for (const Verb& verb : all_verbs()) write_info(reply, verb);
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

std::string usage_line(const Verb& verb) {
  return verb.usage.empty() ? std::string(verb.name) : fmt::format("{} {}", verb.name, verb.usage);
}

}  // namespace

void write_command_reply(ReplyWriter& reply, const Command& command) {
  switch (command.op) {
    case Command::Op::kAll:
    case Command::Op::kInfo:
      return write_all_infos(reply, command.names);
    case Command::Op::kDocs:
      return write_all_docs(reply, command.names);
    case Command::Op::kCount:
      return reply.integer(static_cast<std::int64_t>(all_verbs().size()));
    case Command::Op::kList:
      reply.array(all_verbs().size());
      for (const Verb& verb : all_verbs()) reply.bulk(lower(verb.name));
      return;
  }
}

void write_help(ReplyWriter& reply, const Help& help) {
  if (const Verb* verb = find_verb(help.topic)) {
    reply.array(4);
    reply.bulk(usage_line(*verb));
    reply.bulk(fmt::format("  {}", verb->summary));
    reply.bulk(fmt::format("  answers {}", verb->reply));
    reply.bulk(fmt::format("  example: {}", verb->example));
    return;
  }
  reply.array(all_verbs().size());
  for (const Verb& verb : all_verbs())
    reply.bulk(fmt::format("{}: {}", usage_line(verb), verb.summary));
}

}  // namespace pawl::wire
