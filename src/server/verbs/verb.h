// A verb: everything about one command, in one place. Dispatch, permissions, limits on reserved
// connections, HELP, COMMAND DOCS, metric names, the protocol page and the HTTP routes read it.
//
//   const Verb kRenew{
//       .name = "RENEW", .arity = 2, .access = wire::Access::kUse, .group = "lease",
//       .usage = "lease", .summary = "extend a lease still held", …
//       .handler = kHandler<parse_lease, renew>,
//   };
//
// To add one: write its row, parser and handler in a file of this folder, declare the row in its
// header, and list it in table.cc. A parser reads the arguments and decides nothing else; a handler
// writes and seals exactly one reply, now or when its wait ends.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "server/services.h"
#include "server/session.h"
#include "server/verbs/http_route.h"
#include "wire/access.h"
#include "wire/arg_reader.h"
#include "wire/error_code.h"
#include "wire/reply_writer.h"

namespace pawl::server {

// How a command was answered, for pawl_commands_total.
enum class Served : std::uint8_t { kOk, kError };

// One command while it is served.
struct Command {
  Services& services;
  Session& session;
  Now now;

  [[nodiscard]] wire::ReplyWriter reply() const { return session.reply(); }
  // Ends the reply that was written; it leaves once `after` is durable.
  Served done(BatchId after = {}) const;
  Served error(wire::ErrorCode code, std::string_view text) const;
  Served error(const wire::WireError& error) const { return this->error(error.code, error.text); }
  // The core's decision, whole. `by_request`: the command named a request id.
  Served answer(const core::Reply& reply, bool by_request = false) const;
};

// What a parser may have to know beside the arguments.
struct ParseContext {
  Millis ttl_max = limits::kTtlMaxDefault;
  wire::Protocol protocol = wire::Protocol::kResp2;
};

struct Handler {
  // Only parses; an error is kept in `in`.
  void (*check)(wire::ArgReader& in, const ParseContext& context) = nullptr;
  // Parses and serves.
  Served (*serve)(Command& command, wire::ArgReader& in) = nullptr;
};

struct Verb {
  std::string_view name;  // upper case; lower case in metrics
  int arity = 1;          // counts the name, as in Redis; negative: at least
  wire::Access access = wire::Access::kAdmin;
  std::string_view group;        // "lock", "lease", "inspect", "operate", "connection", "server"
  bool on_reserved = false;      // answered on the connections that are kept for renewals
  bool served_first = false;     // also by a turn that has spent its budget on other commands
  bool while_loading = false;    // answered before the store is loaded
  bool while_observing = false;  // answered on a RESP2 connection that observes: it has no pushes
  bool takes_locks = false;      // counted as an acquire also when it is refused; may block
  bool stores = false;           // may add to the batch; waits while that is full
  std::string_view usage = {};   // arguments only; empty when there are none
  std::string_view summary;
  std::string_view reply;
  std::string_view example;  // a whole line, as typed into redis-cli
  std::string_view since = "0.1.0";
  Handler handler;
  const HttpRoute* http = nullptr;  // nullptr: not available over HTTP

  [[nodiscard]] constexpr wire::Syntax syntax() const { return {name, arity, usage}; }
};

// --- kHandler<parse, serve> ----------------------------------------------------------------------
// `parse` takes an ArgReader&, and a const ParseContext& where it needs one, and returns the
// request; `serve` takes a Command& and that request.

template <auto kParse>
auto parse_with(wire::ArgReader& in, const ParseContext& context) {
  if constexpr (std::is_invocable_v<decltype(kParse), wire::ArgReader&, const ParseContext&>) {
    return kParse(in, context);
  } else {
    return kParse(in);
  }
}

template <auto kParse, auto kServe>
Served parse_and_serve(Command& command, wire::ArgReader& in) {
  const auto request =
      parse_with<kParse>(in, {command.services.settings.ttl_max, command.session.protocol});
  if (!in.ok()) return command.error(*in.take_error());
  return kServe(command, request);
}

template <auto kParse, auto kServe>
inline constexpr Handler kHandler{
    .check = [](wire::ArgReader& in,
                const ParseContext& context) { (void)parse_with<kParse>(in, context); },
    .serve = parse_and_serve<kParse, kServe>,
};

// For a verb without arguments of interest.
struct NoArguments {};
inline NoArguments parse_nothing(wire::ArgReader& /*in*/) {
  return {};
}

}  // namespace pawl::server
