// Access control: which user a connection speaks for, what that user may do, and the delay after a
// wrong secret. The verb table says which role a command needs; what a user's prefixes leave of it
// is decided here.
//
//   access.set_users(Users(…));  // before that, every connection is admin
//   auto refusal = access.check_role(session, verb.name, verb.access);
//   if (refusal) return refused(*refusal);
//   switch (access.authenticate(session, user, secret, now)) …
//
// The checks decide and change nothing; the caller writes the reply. One thread owns it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/rate_limited_log.h"
#include "core/views.h"
#include "server/network.h"
#include "server/session.h"
#include "server/telemetry.h"
#include "server/users.h"
#include "wire/error_code.h"

namespace pawl::server {

// Nothing: permitted. Otherwise what to answer.
using Refusal = std::optional<wire::WireError>;

// A request id as the core knows it: scoped to the user, so that nobody can ask about the request
// of another. Without users it stands for itself, as in every store written before there were any.
class ScopedRequestId {
 public:
  ScopedRequestId(const Session& session, std::string_view request);
  ScopedRequestId(const ScopedRequestId&) = delete;
  ScopedRequestId& operator=(const ScopedRequestId&) = delete;
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::array<char, auth::kUserNameMax + 1 + limits::kRequestMax> buffer_;
  std::string_view text_;
};

class AccessControl {
 public:
  AccessControl(Log& log, Telemetry& telemetry);

  // --- Users -------------------------------------------------------------------------------------
  [[nodiscard]] bool has_users() const { return users_.has_value(); }
  // From now on only these users are served. Call refresh() for every session afterwards.
  void set_users(Users users) { users_ = std::move(users); }
  // After set_users(). False: its user is gone or has changed, and the connection must be closed.
  [[nodiscard]] bool refresh(Session& session) const;
  // As at the beginning of a connection: not authenticated, or admin where there are no users.
  void reset(Session& session) const;
  // Whether there is such a user.
  [[nodiscard]] bool knows(std::string_view user) const;
  // The driver knows by other means (a client certificate) which user this is. False: there is no
  // such user.
  bool identify(Session& session, std::string_view user);

  // --- Authenticating ----------------------------------------------------------------------------
  enum class AuthResult : std::uint8_t {
    kAuthenticated,
    kUserMissing,  // only a secret was given
    kDelayed,      // wrong; the session is served and answered again after the delay
  };
  // Only where there are users. When it fails, the session keeps the user it had.
  AuthResult authenticate(Session& session, std::string_view user, std::string_view secret,
                          Tick now);
  void clear_auth_delay(Session& session);
  // One connection whose delay is over; clear_auth_delay() removes it.
  [[nodiscard]] std::optional<ConnectionId> next_delay_over(Tick now) const;
  // kNever when none is delayed.
  [[nodiscard]] Tick next_deadline() const;
  void forget_delays() { delayed_.clear(); }

  // --- Permissions -------------------------------------------------------------------------------
  // `name` is the command, which needs `access`.
  [[nodiscard]] static Refusal check_role(const Session& session, std::string_view name,
                                          wire::Access access);
  [[nodiscard]] static Refusal check_lock(const Session& session, std::string_view lock);
  // A question about names that begin so: what the user may not see is left out silently, but a
  // question that can never have an answer is refused.
  [[nodiscard]] static Refusal check_prefix(const Session& session, std::string_view prefix);
  // `name` is a command that concerns every lock.
  [[nodiscard]] static Refusal check_whole_store(const Session& session, std::string_view name);
  // A lease ends as a whole, so breaking it needs permission for all of its locks. Those that the
  // user may not touch are not named. `view` of a lock that the user may touch.
  [[nodiscard]] static Refusal check_break(const Session& session, const core::LockView& view,
                                           Token token);
  // Whether the user is limited to some locks.
  [[nodiscard]] static bool is_limited(const Session& session) {
    return session.user != nullptr && !session.user->prefixes.empty();
  }
  // Removes the names that the user may not touch.
  static void hide_locks(const Session& session, std::vector<std::string>& locks);

 private:
  void become(Session& session, UserPtr user);
  // The number by which the core knows a user; it stays the same over reloads.
  core::AccountId account_of(const std::string& user);
  void delay_after_bad_auth(Session& session, Tick now);
  void log_wrong_secret(const Session& session, std::string_view user, Tick now);

  Log& log_;
  Telemetry& telemetry_;
  RateLimitedLog wrong_secret_log_;
  std::map<std::string, core::AccountId> accounts_;
  std::optional<Users> users_;                       // nothing: every connection is admin
  std::set<std::pair<Tick, ConnectionId>> delayed_;  // each connection at most once
};

}  // namespace pawl::server
