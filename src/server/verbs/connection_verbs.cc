#include "server/verbs/connection_verbs.h"

#include <fmt/format.h>

#include "base/version.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

constexpr std::size_t kClientNameMax = 128;

// What Redis answers to a password although none is set: its users know the sentence.
constexpr std::string_view kNoPassword =
    "AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?";

std::string_view parse_client_name(wire::ArgReader& in) {
  const std::string_view name = in.text("a connection name", {0, kClientNameMax});
  if (name.find(' ') != std::string_view::npos)
    in.refuse(wire::ErrorCode::kErr, "a connection name has no spaces");
  return name;
}

// --- HELLO, AUTH ---------------------------------------------------------------------------------

// Nothing: it is that user now. Otherwise how the command was answered, or will be after the delay.
std::optional<Served> authenticate(const Command& command, const Credentials& credentials) {
  AccessControl& access = command.services.access;
  if (!access.has_users()) return command.error(wire::ErrorCode::kErr, kNoPassword);
  switch (access.authenticate(command.session, credentials.user, credentials.password,
                              command.now.tick)) {
    case AccessControl::AuthResult::kAuthenticated:
      if (command.services.connections.admit(command.session)) return std::nullopt;
      access.reset(command.session);
      command.session.closing = true;
      return command.error(wire::ErrorCode::kBusy, command.services.connections.full_text());
    case AccessControl::AuthResult::kUserMissing:
      return command.error(wire::ErrorCode::kErr,
                           "name the user: AUTH user secret, or HELLO 3 AUTH user secret");
    case AccessControl::AuthResult::kDelayed:
      break;
  }
  return Served::kError;  // Answered when the delay is over.
}

Served auth(Command& command, const Credentials& credentials) {
  if (const auto answered = authenticate(command, credentials)) return *answered;
  command.reply().ok();
  return command.done();
}

Served hello(Command& command, const HelloRequest& request) {
  Session& session = command.session;
  if (request.credentials) {
    if (const auto answered = authenticate(command, *request.credentials)) return *answered;
  }
  const bool to_resp2 = request.protocol == wire::Protocol::kResp2;
  if (to_resp2 && session.async_waits > 0) {
    return command.error(wire::ErrorCode::kErr, "ASYNC waits are pending, and RESP2 has no pushes");
  }
  if (to_resp2 && session.protocol == wire::Protocol::kResp3 && session.observation != nullptr) {
    return command.error(wire::ErrorCode::kErr,
                         "this connection observes, and RESP2 has no pushes");
  }
  if (request.protocol) session.protocol = *request.protocol;
  if (request.name) session.name = *request.name;
  wire::ReplyWriter reply = command.reply();
  reply.map(7);
  reply.field("server", "pawl");
  reply.field("version", kVersion);
  reply.field("proto", static_cast<int>(session.protocol));
  reply.field("id", session.id().value);
  reply.field("mode", "standalone");
  reply.field("role", "master");
  reply.bulk("modules");
  reply.array(0);
  return command.done();
}

// --- PING, ECHO, QUIT, RESET, SELECT -------------------------------------------------------------

std::optional<std::string_view> parse_ping(wire::ArgReader& in) {
  std::optional<std::string_view> text;
  if (in.more()) text = in.any("PING");
  in.refuse_rest();
  return text;
}

Served ping(Command& command, std::optional<std::string_view> text) {
  wire::ReplyWriter reply = command.reply();
  text ? reply.bulk(*text) : reply.simple("PONG");
  return command.done();
}

std::string_view parse_echo(wire::ArgReader& in) {
  return in.any("ECHO");
}

Served echo(Command& command, std::string_view text) {
  command.reply().bulk(text);
  return command.done();
}

Served quit(Command& command, NoArguments) {
  command.reply().ok();
  command.session.closing = true;
  return command.done();
}

Served reset(Command& command, NoArguments) {
  Session& session = command.session;
  command.services.replies.cancel_waits(session,
                                        command.now);  // As after a hang-up: without pushes.
  command.services.observers.stop(session);
  command.services.access.reset(session);
  if (command.services.access.has_users())
    command.services.connections.demote(session, command.now.tick);
  session.protocol = wire::Protocol::kResp2;
  session.name.clear();
  command.reply().simple("RESET");
  return command.done();
}

NoArguments parse_select(wire::ArgReader& in) {
  if (in.any("SELECT") != "0")
    in.refuse(wire::ErrorCode::kErr, "SELECT takes 0: there is one database");
  return {};
}

Served select_database(Command& command, NoArguments) {
  command.reply().ok();
  return command.done();
}

// --- CLIENT --------------------------------------------------------------------------------------

std::int64_t seconds(Tick from, Tick to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

// One line of CLIENT LIST.
std::string client_line(const Session& session, Tick now) {
  return fmt::format(
      "id={} addr={} name={} age={} idle={} flags={} db=0 cmds={} waits={} omem={} resp={} user={} "
      "lib-name={} lib-ver={}\n",
      session.id().value, session.peer(), session.name, seconds(session.since, now),
      seconds(session.active, now), session.blocked ? "b" : "N", session.commands,
      session.async_waits + (session.blocked ? 1 : 0), session.outbox().size(),
      static_cast<int>(session.protocol), session.user_name(), session.library,
      session.library_version);
}

// Of all connections for an admin; of connections of their own user for others.
std::string client_list(const Command& command) {
  const Session& session = command.session;
  std::string lines;
  for (const Session* other : command.services.connections.all()) {
    if (session.access == wire::Access::kAdmin || other->user == session.user)
      lines += client_line(*other, command.now.tick);
  }
  return lines;
}

Served client(Command& command, const ClientRequest& request) {
  using Op = ClientRequest::Op;
  Session& session = command.session;
  wire::ReplyWriter reply = command.reply();
  switch (request.op) {
    case Op::kId:
      reply.integer(static_cast<std::int64_t>(session.id().value));
      break;
    case Op::kGetName:
      session.name.empty() ? reply.null() : reply.bulk(session.name);
      break;
    case Op::kSetName:
      session.name = request.text;
      reply.ok();
      break;
    case Op::kSetInfo:
      (wire::is_word(request.attribute, "LIB-NAME") ? session.library : session.library_version) =
          request.text;
      reply.ok();
      break;
    case Op::kInfo:
      reply.verbatim(client_line(session, command.now.tick));
      break;
    case Op::kList:
      reply.verbatim(client_list(command));
      break;
  }
  return command.done();
}

}  // namespace

Credentials parse_auth(wire::ArgReader& in) {
  const std::string_view first = in.any("AUTH");
  if (!in.more()) return {{}, first};
  const Credentials credentials{first, in.any("AUTH")};
  // Shows nothing of what may be a secret.
  if (in.more()) in.refuse(wire::ErrorCode::kErr, "AUTH takes [user] password");
  return credentials;
}

HelloRequest parse_hello(wire::ArgReader& in) {
  HelloRequest hello;
  if (!in.more()) return hello;
  const std::string_view version = in.any("HELLO");
  if (version == "2") {
    hello.protocol = wire::Protocol::kResp2;
  } else if (version == "3") {
    hello.protocol = wire::Protocol::kResp3;
  } else {
    in.refuse(wire::ErrorCode::kNoProto,
              fmt::format("unsupported protocol version {}: 2 or 3", wire::shown(version)));
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

ClientRequest parse_client(wire::ArgReader& in) {
  using Op = ClientRequest::Op;
  ClientRequest client;
  if (in.option("ID")) {
    client.op = Op::kId;
  } else if (in.option("GETNAME")) {
    client.op = Op::kGetName;
  } else if (in.option("INFO")) {
    client.op = Op::kInfo;
  } else if (in.option("LIST")) {
    client.op = Op::kList;
  } else if (in.option("SETNAME")) {
    client.op = Op::kSetName;
    client.text = parse_client_name(in);
  } else if (in.option("SETINFO")) {
    client.op = Op::kSetInfo;
    client.attribute = in.any("SETINFO");
    client.text = in.text("SETINFO", {0, kClientNameMax});
    if (in.ok() && !wire::is_word(client.attribute, "LIB-NAME") &&
        !wire::is_word(client.attribute, "LIB-VER")) {
      in.refuse(wire::ErrorCode::kErr, fmt::format("SETINFO takes LIB-NAME or LIB-VER, got {}",
                                                   wire::shown(client.attribute)));
    }
  }
  in.refuse_rest();
  return client;
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kHello{
    .name = "HELLO",
    .arity = -1,
    .access = wire::Access::kNone,
    .group = "connection",
    .on_reserved = true,
    .served_first = true,
    .while_loading = true,
    .usage = "[2 | 3 [AUTH user password] [SETNAME name]]",
    .summary = "choose RESP2 or RESP3, and authenticate",
    .reply = "map: server, version, proto, id, mode, role, modules",
    .example = "HELLO 3",
    .handler = kHandler<parse_hello, hello>,
};

constinit const Verb kAuth{
    .name = "AUTH",
    .arity = -2,
    .access = wire::Access::kNone,
    .group = "connection",
    .on_reserved = true,
    .served_first = true,
    .while_loading = true,
    .usage = "[user] password",
    .summary = "authenticate",
    .reply = "OK",
    .example = "AUTH batch correct-horse",
    .handler = kHandler<parse_auth, auth>,
};

constinit const Verb kPing{
    .name = "PING",
    .arity = -1,
    .access = wire::Access::kUser,
    .group = "connection",
    .on_reserved = true,
    .served_first = true,
    .while_loading = true,
    .while_observing = true,
    .usage = "[text]",
    .summary = "check that pawld answers on this connection",
    .reply = "PONG, or the text",
    .example = "PING",
    .handler = kHandler<parse_ping, ping>,
};

constinit const Verb kEcho{
    .name = "ECHO",
    .arity = 2,
    .access = wire::Access::kObserve,
    .group = "connection",
    .while_loading = true,
    .usage = "text",
    .summary = "answer the text",
    .reply = "the text",
    .example = "ECHO hello",
    .handler = kHandler<parse_echo, echo>,
};

constinit const Verb kQuit{
    .name = "QUIT",
    .arity = -1,
    .access = wire::Access::kNone,
    .group = "connection",
    .on_reserved = true,
    .while_loading = true,
    .while_observing = true,
    .summary = "close this connection",
    .reply = "OK",
    .example = "QUIT",
    .handler = kHandler<parse_nothing, quit>,
};

constinit const Verb kReset{
    .name = "RESET",
    .arity = 1,
    .access = wire::Access::kNone,
    .group = "connection",
    .on_reserved = true,
    .while_loading = true,
    .summary =
        "put the connection back to its beginning; its waits are cancelled, its observing ends",
    .reply = "RESET",
    .example = "RESET",
    .handler = kHandler<parse_nothing, reset>,
};

constinit const Verb kSelect{
    .name = "SELECT",
    .arity = 2,
    .access = wire::Access::kUser,
    .group = "connection",
    .on_reserved = true,
    .while_loading = true,
    .usage = "0",
    .summary = "compatibility: only database 0 exists",
    .reply = "OK",
    .example = "SELECT 0",
    .handler = kHandler<parse_select, select_database>,
};

constinit const Verb kClient{
    .name = "CLIENT",
    .arity = -2,
    .access = wire::Access::kUser,
    .group = "connection",
    .on_reserved = true,
    .while_loading = true,
    .usage =
        "ID | GETNAME | SETNAME name | SETINFO LIB-NAME text | SETINFO LIB-VER text | INFO | "
        "LIST",
    .summary = "about this connection",
    .reply = "as in Redis",
    .example = "CLIENT SETNAME nightly",
    .handler = kHandler<parse_client, client>,
};

}  // namespace pawl::server
