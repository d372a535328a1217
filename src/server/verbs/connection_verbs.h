// HELLO, AUTH, PING, ECHO, QUIT, RESET, SELECT and CLIENT: what ordinary Redis clients send before
// and beside the real work.
#pragma once

#include "server/verbs/verb.h"

namespace pawl::server {

extern const Verb kHello;
extern const Verb kAuth;
extern const Verb kPing;
extern const Verb kEcho;
extern const Verb kQuit;
extern const Verb kReset;
extern const Verb kSelect;
extern const Verb kClient;

struct Credentials {
  std::string_view user;  // empty when only a password was given
  std::string_view password;
};
[[nodiscard]] Credentials parse_auth(wire::ArgReader& in);

struct HelloRequest {
  std::optional<wire::Protocol> protocol;
  std::optional<Credentials> credentials;
  std::optional<std::string_view> name;
};
[[nodiscard]] HelloRequest parse_hello(wire::ArgReader& in);

struct ClientRequest {
  enum class Op : std::uint8_t { kId, kGetName, kSetName, kSetInfo, kInfo, kList };
  Op op = Op::kId;
  std::string_view text;       // kSetName: the name (may be empty). kSetInfo: the value.
  std::string_view attribute;  // kSetInfo: "LIB-NAME" or "LIB-VER", as sent
};
[[nodiscard]] ClientRequest parse_client(wire::ArgReader& in);

}  // namespace pawl::server
