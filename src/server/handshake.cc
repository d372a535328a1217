#include "server/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/version.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

// What Redis says when a password comes although none is set: its users know the sentence.
constexpr std::string_view kNoPassword =
    "AUTH <password> called without any password configured for the default user. Are you sure "
    "your "
    "configuration is "
    "correct?";

// redis-benchmark asks for these two before it starts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSettings{
    {{"save", ""}, {"appendonly", "yes"}}};

bool asks_for(std::string_view pattern, std::string_view setting) {
  return pattern == "*" || wire::lower(pattern) == setting;
}

std::int64_t seconds(Tick from, Tick to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

}  // namespace

void answer(Session& session, const wire::Hello& hello, Credentials credentials) {
  if (hello.credentials && credentials == Credentials::kRefused)
    return session.reply().error(wire::ErrorCode::kErr, kNoPassword);
  if (hello.protocol == wire::Protocol::kResp2 && session.async_waits > 0) {
    return session.reply().error(wire::ErrorCode::kErr,
                                 "ASYNC waits are pending, and RESP2 has no pushes");
  }
  if (hello.protocol == wire::Protocol::kResp2 && session.protocol == wire::Protocol::kResp3 &&
      session.observation != nullptr) {
    return session.reply().error(wire::ErrorCode::kErr,
                                 "this connection observes, and RESP2 has no pushes");
  }
  if (hello.protocol) session.protocol = *hello.protocol;
  if (hello.name) session.name = *hello.name;
  wire::ReplyWriter reply = session.reply();
  reply.map(7);
  reply.field("server", "pawl");
  reply.field("version", kVersion);
  reply.field("proto", static_cast<int>(session.protocol));
  reply.field("id", session.id().value);
  reply.field("mode", "standalone");
  reply.field("role", "master");
  reply.bulk("modules");
  reply.array(0);
}

void answer(Session& session, const wire::Auth&) {
  session.reply().error(wire::ErrorCode::kErr, kNoPassword);
}

void answer(Session& session, const wire::Ping& ping) {
  if (ping.text) return session.reply().bulk(*ping.text);
  session.reply().simple("PONG");
}

void answer(Session& session, const wire::Echo& echo) {
  session.reply().bulk(echo.text);
}

void answer(Session& session, const wire::Quit&) {
  session.reply().ok();
  session.closing = true;
}

void answer(Session& session, const wire::Reset&) {
  session.protocol = wire::Protocol::kResp2;
  session.name.clear();
  session.reply().simple("RESET");
}

void answer(Session& session, const wire::Select&) {
  session.reply().ok();
}

void answer(Session& session, const wire::ConfigGet& get) {
  std::vector<std::pair<std::string_view, std::string_view>> found;
  for (const auto& setting : kSettings) {
    const bool asked =
        std::any_of(get.patterns.begin(), get.patterns.end(),
                    [&](std::string_view pattern) { return asks_for(pattern, setting.first); });
    if (asked) found.push_back(setting);
  }
  wire::ReplyWriter reply = session.reply();
  reply.map(found.size());
  for (const auto& [name, value] : found) reply.field(name, value);
}

std::string client_line(const Session& session, Tick now) {
  return fmt::format(
      "id={} addr={} name={} age={} idle={} flags={} db=0 cmds={} waits={} omem={} resp={} user={} "
      "lib-name={} "
      "lib-ver={}",
      session.id().value, session.peer(), session.name, seconds(session.since, now),
      seconds(session.active, now), session.blocked ? "b" : "N", session.commands,
      session.async_waits + (session.blocked ? 1 : 0), session.outbox().size(),
      static_cast<int>(session.protocol), session.user == nullptr ? "" : session.user->name,
      session.library, session.library_version);
}

}  // namespace pawl::server
