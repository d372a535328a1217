#include "server/commands.h"

#include <fmt/format.h>

#include "server/verbs/table.h"

namespace pawl::server {
namespace {

wire::WireError standby_error(const store::Active& active) {
  return {wire::ErrorCode::kReadOnly,
          active.address.empty()
              ? "this pawld stands by, and which one is active is not known yet; ask again in a "
                "moment"
              : wire::active_text(active.address)};
}

}  // namespace

bool Commands::is_served_first(std::string_view name) {
  const Verb* verb = find_verb(name);
  return verb != nullptr && verb->served_first;
}

bool Commands::is_stored(std::string_view name) {
  const Verb* verb = find_verb(name);
  return verb != nullptr && verb->stores;
}

void Commands::serve(Session& session, std::span<const std::string_view> args, Now now) {
  ++session.commands;
  session.active = now.tick;
  ++services_.telemetry.commands_served;
  const std::size_t index = verb_index(args[0]);
  services_.stats.count_command(index);
  Command command{services_, session, now};
  const Served served = index < all_verbs().size() ? serve_verb(command, *all_verbs()[index], args)
                                                   : command.error(unknown_command(args));
  Telemetry::Command& counted = services_.telemetry.commands[index];
  ++(served == Served::kOk ? counted.ok : counted.error);
}

Served Commands::serve_verb(Command& command, const Verb& verb,
                            std::span<const std::string_view> args) {
  if (const Refusal refusal = check_early(command.session, verb)) {
    if (verb.takes_locks) services_.telemetry.count_refused();
    return command.error(*refusal);
  }
  wire::ArgReader in(verb.syntax(), args);
  if (!in.ok()) return command.error(*in.take_error());
  return verb.handler.serve(command, in);
}

Refusal Commands::check_early(Session& session, const Verb& verb) const {
  using wire::ErrorCode;
  using wire::WireError;
  if (services_.load.loading && !verb.while_loading) {
    if (services_.load.standby) return standby_error(services_.load.active);
    return WireError{ErrorCode::kLoading, "pawld is still reading its data; ask again in a moment"};
  }
  if (Refusal refusal = AccessControl::check_role(session, verb.name, verb.access)) return refusal;
  if (session.observation != nullptr && session.protocol == wire::Protocol::kResp2 &&
      !verb.while_observing) {
    return WireError{
        ErrorCode::kErr,
        fmt::format("{} is not answered on a RESP2 connection that observes: only OBSERVE, "
                    "UNOBSERVE, PING and QUIT; use RESP3, or another connection",
                    verb.name)};
  }
  if (!services_.connections.is_reserved(session) || verb.on_reserved) return std::nullopt;
  return WireError{
      ErrorCode::kBusy,
      fmt::format("connections: the limit of {} is reached; this one may only RENEW, MRENEW, "
                  "RELEASE and PING",
                  services_.connections.limits().ordinary)};
}

}  // namespace pawl::server
