// ASK: to tell the holders of a lock that somebody wants it.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kAsk;

struct AskRequest {
  std::string_view lock;
  std::string_view owner;   // who asks, for people; may be empty
  std::string_view reason;  // may be empty
};
[[nodiscard]] AskRequest parse_ask(wire::ArgReader& in);

}  // namespace pawl::server
