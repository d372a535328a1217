// The engine's doorkeeper: who a connection speaks for, and what that user may do. The verb table
// says which role a command needs; what a user's prefixes leave of it is decided here.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "server/engine.h"
#include "server/handshake.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

// Between guesses on one connection. It costs a timer and no thread, and nobody else notices.
constexpr Nanos kWrongSecretDelay = 1s;
constexpr Nanos kWrongSecretLogEvery = 1s;

}  // namespace

// --- Who it is -----------------------------------------------------------------------------------

void Engine::set_users(Users users) {
  users_ = std::move(users);
  for (auto& [id, session] : sessions_) {
    if (session->gone) continue;
    if (session->user == nullptr) {
      session->access = wire::Access::kNone;
      continue;
    }
    const UserPtr now = users_->find(session->user->name);
    if (now != nullptr && *now == *session->user) {
      session->user = now;
    } else {
      dismiss(*session);
    }
  }
}

bool Engine::identify(ConnectionId connection, std::string_view user) {
  Session* session = find(connection);
  if (session == nullptr || !users_) return false;
  UserPtr known = users_->find(user);
  if (known == nullptr) return false;
  become(*session, std::move(known));
  return true;
}

void Engine::become(Session& session, UserPtr user) {
  session.access = user->role;
  session.user = std::move(user);
}

// As at the beginning of a connection.
void Engine::become_nobody(Session& session) {
  session.access = users_ ? wire::Access::kNone : wire::Access::kAdmin;
  session.user = nullptr;
}

// Removed, another secret, other rights: whatever it is, the connection ends, and whoever may can
// authenticate anew. Leases stay: they belong to no connection, and end by themselves when nobody
// may renew them. Waits end, for nothing more is to be granted on the old terms.
void Engine::dismiss(Session& session) {
  log_.info(fmt::format("connection {} ({}) is closed: the auth_file has changed for its user",
                        session.id().value, describe(session)),
            {{"user", user_of(session)}, {"address", session.peer()}});
  pardon(session);
  become_nobody(session);
  error(session, wire::ErrorCode::kNoAuth, wire::kUsersFarewell);
  session.closing = true;
  // Like a hang-up, before any request of the next turn is served: a release there must not be
  // handed to it.
  hangup(session.id());
}

std::string Engine::describe(const Session& session) {
  return session.user == nullptr ? session.peer()
                                 : fmt::format("{} at {}", session.user->name, session.peer());
}

std::string_view Engine::user_of(const Session& session) {
  return session.user == nullptr ? std::string_view() : session.user->name;
}

// --- AUTH ----------------------------------------------------------------------------------------

void Engine::handle(Session& session, const wire::Auth& request) {
  if (!users_) {
    answer(session, request);
    return seal(session, BatchId{});
  }
  if (!authenticate(session, request.credentials)) return;
  session.reply().ok();
  seal(session, BatchId{});
}

void Engine::handle(Session& session, const wire::Hello& request) {
  if (users_ && request.credentials && !authenticate(session, *request.credentials)) return;
  answer(session, request, users_ ? Credentials::kTaken : Credentials::kRefused);
  seal(session, BatchId{});
}

// False: it is answered, or will be when the delay is over. Whoever it was before, it stays.
bool Engine::authenticate(Session& session, const wire::Credentials& credentials) {
  if (credentials.user.empty()) {
    error(session, wire::ErrorCode::kErr,
          "name the user: AUTH user secret, or HELLO 3 AUTH user secret");
    return false;
  }
  if (UserPtr user = users_->check(credentials.user, credentials.password)) {
    become(session, std::move(user));
    return true;
  }
  punish(session);
  log_wrong_secret(session, credentials.user);
  return false;
}

void Engine::punish(Session& session) {
  PAWL_ASSERT(!session.punished);
  ++counters_.wrong_secrets;
  session.punished = true;
  session.punished_until = now_.tick + kWrongSecretDelay;
  punished_.emplace(session.punished_until, session.id());
}

void Engine::pardon(Session& session) {
  if (!session.punished) return;
  session.punished = false;
  punished_.erase({session.punished_until, session.id()});
}

void Engine::end_punishments() {
  while (!punished_.empty() && punished_.begin()->first <= now_.tick) {
    Session* session = find(punished_.begin()->second);
    PAWL_ASSERT(session != nullptr && session->punished);
    pardon(*session);
    error(*session, wire::ErrorCode::kWrongPass, "wrong user or secret");
    // Otherwise whoever sends a thousand guesses and leaves would keep a connection for a thousand
    // delays.
    if (session->hung_up) session->closing = true;
    mark_ready(*session);
  }
}

// Bounded, like all that a stranger can cause; and only names we know are named: a secret in the
// wrong place stays unsaid.
void Engine::log_wrong_secret(const Session& session, std::string_view user) {
  if (now_.tick < wrong_secret_log_at_) {
    ++wrong_secrets_unsaid_;
    return;
  }
  const bool known = users_->find(user) != nullptr;
  const std::string name = known ? std::string(user) : "an unknown user";
  const std::string more = wrong_secrets_unsaid_ == 0
                               ? ""
                               : fmt::format(" ({} more since the last)", wrong_secrets_unsaid_);
  log_.warning(fmt::format("wrong secret for {} from {}{}", name, session.peer(), more),
               {{"event", "wrong_secret"},
                {"user", known ? name : std::string_view()},
                {"address", session.peer()},
                {"more", wrong_secrets_unsaid_}});
  wrong_secret_log_at_ = now_.tick + kWrongSecretLogEvery;
  wrong_secrets_unsaid_ = 0;
}

// --- What it may do ------------------------------------------------------------------------------

bool Engine::refuse_role(Session& session, const wire::Verb& verb) {
  if (wire::permits(session.access, verb.access)) return false;
  if (session.user == nullptr) {
    const std::string needed = verb.access == wire::Access::kUser
                                   ? "a user"
                                   : fmt::format("the role {}", to_text(verb.access));
    error(session, wire::ErrorCode::kNoAuth,
          fmt::format(
              "{} needs {}: authenticate first, with AUTH user secret or HELLO 3 AUTH user secret",
              verb.name, needed));
  } else {
    error(session, wire::ErrorCode::kNoPerm,
          fmt::format("{} needs the role {}; user {} has {}", verb.name, to_text(verb.access),
                      session.user->name, to_text(session.access)));
  }
  return true;
}

bool Engine::refuse_lock(Session& session, std::string_view lock) {
  if (reaches(session.user, lock)) return false;
  error(session, wire::ErrorCode::kNoPerm,
        fmt::format("lock {} is outside the prefixes of user {}: {}", wire::shown(lock),
                    session.user->name, prefixes_of(*session.user)));
  return true;
}

// Of what is shown, the rest is left out in silence; but a question that can never have an answer
// is a mistake.
bool Engine::refuse_beginning(Session& session, std::string_view beginning) {
  if (reaches_below(session.user, beginning)) return false;
  error(session, wire::ErrorCode::kNoPerm,
        fmt::format("prefix {} is outside the prefixes of user {}: {}", wire::shown(beginning),
                    session.user->name, prefixes_of(*session.user)));
  return true;
}

bool Engine::refuse_whole_store(Session& session, std::string_view verb) {
  if (session.user == nullptr || session.user->prefixes.empty()) return false;
  error(session, wire::ErrorCode::kNoPerm,
        fmt::format("{} concerns every lock, and user {} is limited to the prefixes {}", verb,
                    session.user->name, prefixes_of(*session.user)));
  return true;
}

// A lease ends as a whole, so to break it one must be allowed all of its locks. Those that are not
// are not named.
bool Engine::refuse_breaking(Session& session, const wire::Break& request) {
  if (session.user == nullptr || session.user->prefixes.empty()) return false;
  if (refuse_lock(session, request.lock)) return true;
  const core::LockView view = core_.inspect(request.lock, now_);
  for (const core::HolderView& holder : view.holders) {
    if (holder.token != request.token) continue;
    if (std::all_of(holder.locks.begin(), holder.locks.end(),
                    [&](const std::string& lock) { return reaches(session.user, lock); }))
      return false;
    error(session, wire::ErrorCode::kNoPerm,
          fmt::format("this lease also holds locks outside the prefixes of user {}: {}",
                      session.user->name, prefixes_of(*session.user)));
    return true;
  }
  return false;
}

// Names that the user may not touch are none of its business either.
void Engine::hide(const Session& session, std::vector<std::string>& locks) {
  if (session.user == nullptr || session.user->prefixes.empty()) return;
  std::erase_if(locks, [&](const std::string& lock) { return !reaches(session.user, lock); });
}

// Request ids are scoped to the user. The separator is in neither of them; without users the id
// stands for itself, as in every store written before there were any.
std::string_view Engine::scoped(const Session& session, std::string_view request) {
  if (session.user == nullptr || request.empty()) return request;
  scoped_.assign(session.user->name).append(1, ':').append(request);
  return scoped_;
}

}  // namespace pawl::server
