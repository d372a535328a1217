// The commands that ordinary Redis clients send before and beside the real work. They touch the
// session alone.
#pragma once

#include "server/session.h"
#include "wire/request.h"

namespace pawl::server {

// Whether HELLO's credentials have been looked at already, or are a mistake: this pawld knows no
// users.
enum class Credentials : std::uint8_t { kTaken, kRefused };

// Each writes one reply to the session and leaves sealing it to the caller.
void answer(Session& session, const wire::Hello& hello, Credentials credentials);
void answer(Session& session, const wire::Auth& auth);  // Where pawld knows no users.
void answer(Session& session, const wire::Ping& ping);
void answer(Session& session, const wire::Echo& echo);
void answer(Session& session, const wire::Quit& quit);
void answer(Session& session,
            const wire::Reset& reset);  // The session's own state; its waits are the engine's.
void answer(Session& session, const wire::Select& select);
void answer(Session& session, const wire::ConfigGet& get);

// One line of CLIENT LIST, without its end.
[[nodiscard]] std::string client_line(const Session& session, Tick now);

}  // namespace pawl::server
