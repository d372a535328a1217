#include "wire/request.h"

#include <fmt/format.h>

#include "wire/acquire_options.h"
#include "wire/arg_reader.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr std::size_t kClientNameMax = 128;

// Leaves `leases` as it should be answered, or refuses all of it: a call with one slip renews
// nothing.
MRenew parse_mrenew(ArgReader& in, std::size_t count, std::vector<LeaseId>& leases) {
  leases.clear();
  if (count > limits::kRenewsPerCall) {
    in.refuse(ErrorCode::kTooLong,
              fmt::format("MRENEW takes at most {} leases, got {}", limits::kRenewsPerCall, count));
  }
  while (in.more()) leases.push_back(in.lease());
  return {leases};
}

Locks parse_locks(ArgReader& in) {
  Locks locks;
  while (in.more()) {
    if (in.option("PREFIX")) {
      locks.prefix = in.text("PREFIX", {0, limits::kLockNameMax});
    } else if (in.option("CURSOR")) {
      locks.cursor = in.text("CURSOR", {1, limits::kCursorMax});
    } else if (in.option("COUNT")) {
      locks.count = in.number("COUNT", {1, limits::kCountMax});
    } else {
      in.refuse_rest();
    }
  }
  return locks;
}

History parse_history(ArgReader& in) {
  History history{.lock = in.lock()};
  while (in.more()) {
    if (in.option("COUNT")) {
      history.count = in.number("COUNT", {1, limits::kCountMax});
    } else {
      in.refuse_rest();
    }
  }
  return history;
}

std::string_view parse_prefix(ArgReader& in) {
  return in.text("a prefix", {0, limits::kLockNameMax});
}

Observe parse_observe(ArgReader& in) {
  Observe observe{.prefix = parse_prefix(in), .from = {}};
  if (in.option("FROM")) {
    const std::string_view id = in.any("FROM");
    observe.from = event_id_from_text(id);
    if (in.ok() && !observe.from) {
      in.refuse(ErrorCode::kErr,
                fmt::format("FROM must be an id that an event or OBSERVE told, got {}", shown(id)));
    }
  }
  in.refuse_rest();
  return observe;
}

std::string_view parse_reason(ArgReader& in) {
  return in.text("REASON", {1, limits::kReasonMax});
}

Break parse_break(ArgReader& in) {
  Break request{.lock = in.lock(), .token = {}, .now = false, .reason = {}};
  while (in.more()) {
    if (in.option("TOKEN")) {
      request.token = in.token("TOKEN");
    } else if (in.option("NOW")) {
      request.now = true;
    } else if (in.option("REASON")) {
      request.reason = parse_reason(in);
    } else {
      in.refuse_rest();
    }
  }
  if (in.ok() && request.token == Token{})
    in.refuse(ErrorCode::kErr, "BREAK needs TOKEN t: the token that INSPECT shows");
  if (in.ok() && request.reason.empty()) in.refuse(ErrorCode::kErr, "BREAK needs REASON text");
  return request;
}

Raise parse_raise(ArgReader& in) {
  Raise request{.token = in.token("RAISE"), .reason = {}};
  if (in.option("REASON")) request.reason = parse_reason(in);
  in.refuse_rest();
  return request;
}

std::string_view parse_client_name(ArgReader& in) {
  const std::string_view name = in.text("a connection name", {0, kClientNameMax});
  if (name.find(' ') != std::string_view::npos)
    in.refuse(ErrorCode::kErr, "a connection name has no spaces");
  return name;
}

Hello parse_hello(ArgReader& in) {
  Hello hello;
  if (!in.more()) return hello;
  const std::string_view version = in.any("HELLO");
  if (version == "2") {
    hello.protocol = Protocol::kResp2;
  } else if (version == "3") {
    hello.protocol = Protocol::kResp3;
  } else {
    in.refuse(ErrorCode::kNoProto,
              fmt::format("unsupported protocol version {}: 2 or 3", shown(version)));
  }
  while (in.more()) {
    if (in.option("AUTH")) {
      const std::string_view user = in.any("AUTH");
      hello.credentials = Credentials{user, in.any("AUTH")};
    } else if (in.option("SETNAME")) {
      hello.name = parse_client_name(in);
    } else {
      in.refuse_rest();
    }
  }
  return hello;
}

Auth parse_auth(ArgReader& in) {
  const std::string_view first = in.any("AUTH");
  if (!in.more()) return {{{}, first}};
  const Auth auth{{first, in.any("AUTH")}};
  if (in.more())
    in.refuse(ErrorCode::kErr,
              "AUTH takes [user] password");  // Shows nothing of what may be a secret.
  return auth;
}

Ping parse_ping(ArgReader& in) {
  Ping ping;
  if (in.more()) ping.text = in.any("PING");
  in.refuse_rest();
  return ping;
}

Select parse_select(ArgReader& in) {
  if (in.any("SELECT") != "0") in.refuse(ErrorCode::kErr, "SELECT takes 0: there is one database");
  return {};
}

Client parse_client(ArgReader& in) {
  Client client;
  if (in.option("ID")) {
    client.op = Client::Op::kId;
  } else if (in.option("GETNAME")) {
    client.op = Client::Op::kGetName;
  } else if (in.option("INFO")) {
    client.op = Client::Op::kInfo;
  } else if (in.option("LIST")) {
    client.op = Client::Op::kList;
  } else if (in.option("SETNAME")) {
    client.op = Client::Op::kSetName;
    client.text = parse_client_name(in);
  } else if (in.option("SETINFO")) {
    client.op = Client::Op::kSetInfo;
    client.attribute = in.any("SETINFO");
    client.text = in.text("SETINFO", {0, kClientNameMax});
    if (in.ok() && !is_word(client.attribute, "LIB-NAME") &&
        !is_word(client.attribute, "LIB-VER")) {
      in.refuse(ErrorCode::kErr,
                fmt::format("SETINFO takes LIB-NAME or LIB-VER, got {}", shown(client.attribute)));
    }
  }
  in.refuse_rest();
  return client;
}

Command parse_command(ArgReader& in) {
  Command command;
  if (in.option("COUNT")) {
    command.op = Command::Op::kCount;
  } else if (in.option("LIST")) {
    command.op = Command::Op::kList;
  } else if (in.option("DOCS")) {
    command.op = Command::Op::kDocs;
    command.names = in.rest();
  } else if (in.option("INFO")) {
    command.op = Command::Op::kInfo;
    command.names = in.rest();
  }
  in.refuse_rest();
  return command;
}

ConfigGet parse_config(ArgReader& in) {
  if (!in.option("GET")) in.refuse_rest();
  return {in.rest()};
}

Help parse_help(ArgReader& in) {
  Help help;
  if (in.more()) help.topic = in.any("HELP");
  in.refuse_rest();
  return help;
}

// pawld's own working directory is nothing that whoever asks could know.
Backup parse_backup(ArgReader& in) {
  const Backup backup{in.text("dir", {1, limits::kPathMax})};
  if (in.ok() && !backup.directory.starts_with('/'))
    in.refuse(ErrorCode::kErr,
              "dir must be absolute: a path on the machine of pawld that begins with /");
  return backup;
}

}  // namespace

ParsedRequest RequestParser::parse(const Verb& verb, std::span<const std::string_view> args,
                                   Protocol protocol) {
  ParsedRequest parsed;
  ArgReader in(verb, args);
  if (in.ok()) read(verb.id, in, args, protocol, parsed.request);
  if (!in.ok()) {
    parsed.request.emplace<std::monostate>();
    parsed.error = in.take_error();
  }
  return parsed;
}

void RequestParser::read(VerbId verb, ArgReader& in, std::span<const std::string_view> args,
                         Protocol protocol, Request& request) {
  switch (verb) {
    case VerbId::kAcquire:  // In place: it is by far the largest.
      return parse_acquire(in, request.emplace<AcquireSpec>(), settings_.ttl_max, protocol);
    case VerbId::kCancel:
      request = Cancel{in.request_id()};
      return;
    case VerbId::kRenew:
      request = Renew{in.lease()};
      return;
    case VerbId::kMRenew:
      request = parse_mrenew(in, args.size() - 1, leases_);
      return;
    case VerbId::kRelease:
      request = Release{in.lease()};
      return;
    case VerbId::kInspect:
      request = Inspect{in.lock()};
      return;
    case VerbId::kLocks:
      request = parse_locks(in);
      return;
    case VerbId::kHistory:
      request = parse_history(in);
      return;
    case VerbId::kObserve:
      request = parse_observe(in);
      return;
    case VerbId::kUnobserve:
      request = Unobserve{parse_prefix(in)};
      return;
    case VerbId::kBreak:
      request = parse_break(in);
      return;
    case VerbId::kRaise:
      request = parse_raise(in);
      return;
    case VerbId::kBackup:
      request = parse_backup(in);
      return;
    case VerbId::kStatus:
      request = Status{};
      return;
    case VerbId::kHello:
      request = parse_hello(in);
      return;
    case VerbId::kAuth:
      request = parse_auth(in);
      return;
    case VerbId::kPing:
      request = parse_ping(in);
      return;
    case VerbId::kEcho:
      request = Echo{in.any("ECHO")};
      return;
    case VerbId::kQuit:
      request = Quit{};
      return;
    case VerbId::kReset:
      request = Reset{};
      return;
    case VerbId::kSelect:
      request = parse_select(in);
      return;
    case VerbId::kClient:
      request = parse_client(in);
      return;
    case VerbId::kCommand:
      request = parse_command(in);
      return;
    case VerbId::kInfo:
      request = Info{in.rest()};
      return;
    case VerbId::kConfig:
      request = parse_config(in);
      return;
    case VerbId::kTime:
      request = Time{};
      return;
    case VerbId::kHelp:
      request = parse_help(in);
      return;
  }
}

WireError unknown_command(std::span<const std::string_view> args) {
  const std::string_view name = args.empty() ? std::string_view{} : args.front();
  return {ErrorCode::kErr, fmt::format("unknown command {}; COMMAND LIST names all", shown(name))};
}

}  // namespace pawl::wire
