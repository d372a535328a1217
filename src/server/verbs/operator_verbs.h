// BREAK, RAISE and BACKUP: for operators. All of them are logged.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kBreak;
extern const Verb kRaise;
extern const Verb kBackup;
extern const Verb kHandover;

struct BreakRequest {
  std::string_view lock;
  Token token;
  bool now = false;
  std::string_view reason;
};
[[nodiscard]] BreakRequest parse_break(wire::ArgReader& in);

struct RaiseRequest {
  Token token;
  std::string_view reason;
};
[[nodiscard]] RaiseRequest parse_raise(wire::ArgReader& in);

// The directory, which is absolute: no client can know the working directory of pawld.
[[nodiscard]] std::string_view parse_backup(wire::ArgReader& in);

}  // namespace pawl::server
