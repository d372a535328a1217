// The arguments of a command into a typed request, everything in limits.h checked.
//
//   wire::RequestParser parser({.ttl_max = settings.max_ttl});      // one per loop; keeps scratch space
//   const auto parsed = parser.parse(*verb, args, session.protocol());
//   if (parsed.error) return reply.error(*parsed.error);             // the connection goes on
//   if (const auto* spec = std::get_if<AcquireSpec>(&parsed.request)) …
//
// Options follow the positional part in any order, each at most once (META up to limits::kMetaPairs
// times); their names ignore case. Numbers are decimal digits only. Nothing is clamped: out of
// range is an error that names the range. That ASYNC needs RESP3 is checked here, which is why
// parse() takes the protocol.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/lease_terms.h"
#include "base/limits.h"
#include "base/types.h"
#include "wire/error_code.h"
#include "wire/events.h"
#include "wire/reply_writer.h"
#include "wire/verbs.h"

namespace pawl::wire {

class ArgReader;

struct Cancel {
  std::string_view request;
};
struct Renew {
  LeaseId lease;
};
struct MRenew {
  std::span<const LeaseId>
      leases;  // 1 to limits::kRenewsPerCall, in the caller's order; the parser's memory
};
struct Release {
  LeaseId lease;
};
struct Inspect {
  std::string_view lock;
};
struct Locks {
  std::string_view prefix;  // empty: all
  std::string_view cursor =
      "0";  // "0": from the start. Otherwise opaque: what an earlier LOCKS answered.
  std::size_t count = limits::kCountDefault;
};
struct History {
  std::string_view lock;
  std::size_t count = limits::kCountDefault;
};
struct Observe {
  std::string_view prefix;      // empty: all
  std::optional<EventId> from;  // what was seen last; nothing: from now on
};
struct Unobserve {
  std::string_view prefix;
};
struct Break {
  std::string_view lock;
  Token token;
  bool now = false;
  std::string_view reason;
};
struct Raise {
  Token token;
  std::string_view reason;
};
struct Backup {
  std::string_view directory;  // absolute
};
struct Status {};

struct Credentials {
  std::string_view user;  // empty when only a password was given
  std::string_view password;
};
struct Hello {
  std::optional<Protocol> protocol;
  std::optional<Credentials> credentials;
  std::optional<std::string_view> name;
};
struct Auth {
  Credentials credentials;
};
struct Ping {
  std::optional<std::string_view> text;
};
struct Echo {
  std::string_view text;
};
struct Quit {};
struct Reset {};
struct Select {};  // database 0, the only one
struct Client {
  enum class Op : std::uint8_t { kId, kGetName, kSetName, kSetInfo, kInfo, kList };
  Op op = Op::kId;
  std::string_view text;       // kSetName: the name (may be empty). kSetInfo: the value.
  std::string_view attribute;  // kSetInfo: "LIB-NAME" or "LIB-VER", as sent
};
struct Command {
  enum class Op : std::uint8_t { kAll, kCount, kDocs, kInfo, kList };
  Op op = Op::kAll;
  std::span<const std::string_view> names;  // kDocs, kInfo: empty = every command
};
struct Info {
  std::span<const std::string_view> sections;  // empty = all
};
struct ConfigGet {
  std::span<const std::string_view> patterns;
};
struct Time {};
struct Help {
  std::string_view topic;  // empty: the list of commands
};

using Request =
    std::variant<std::monostate, AcquireSpec, Cancel, Renew, MRenew, Release, Inspect, Locks,
                 History, Observe, Unobserve, Break, Raise, Backup, Status, Hello, Auth, Ping, Echo,
                 Quit, Reset, Select, Client, Command, Info, ConfigGet, Time, Help>;

struct ParsedRequest {
  Request request;                 // monostate when refused
  std::optional<WireError> error;  // set when refused
};

struct ParserSettings {
  Millis ttl_max = limits::kTtlMaxDefault;
};

class RequestParser {
 public:
  explicit RequestParser(ParserSettings settings = {}) : settings_(settings) {}

  // `args` holds at least the name, which `verb` was found by. The request's views point into
  // `args` and into this parser; they are valid until the bytes move or the next parse().
  ParsedRequest parse(const Verb& verb, std::span<const std::string_view> args, Protocol protocol);

 private:
  void read(VerbId verb, ArgReader& in, std::span<const std::string_view> args, Protocol protocol,
            Request& request);

  ParserSettings settings_;
  std::vector<LeaseId> leases_;
};

// What an unknown command is answered; quotes no more than a little of what was sent.
[[nodiscard]] WireError unknown_command(std::span<const std::string_view> args);

}  // namespace pawl::wire
