// The commands that ordinary Redis clients send before and beside the real work. They touch the session alone.
#pragma once

#include "server/session.h"
#include "wire/request.h"

namespace pawl::server {

// Each writes one reply to the session and leaves sealing it to the caller.
void answer(Session& session, const wire::Hello& hello);
void answer(Session& session, const wire::Auth& auth);
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
