#include "server/access_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

// Between guesses on one connection. It costs a timer and no thread, and delays nobody else.
constexpr Nanos kWrongSecretDelay = 1s;
constexpr RateLimitedLog::Limit kWrongSecretLines{.lines = 1, .period = 1s};

wire::WireError no_permission(std::string text) {
  return {wire::ErrorCode::kNoPerm, std::move(text)};
}

}  // namespace

ScopedRequestId::ScopedRequestId(const Session& session, std::string_view request)
    : text_(request) {
  if (session.user == nullptr || request.empty()) return;
  const std::string& name = session.user->name;
  PAWL_ASSERT(name.size() + 1 + request.size() <= buffer_.size());
  char* end = std::copy(name.begin(), name.end(), buffer_.begin());
  *end++ = ':';  // In neither of the two.
  end = std::copy(request.begin(), request.end(), end);
  text_ = {buffer_.data(), static_cast<std::size_t>(end - buffer_.data())};
}

AccessControl::AccessControl(Log& log, Telemetry& telemetry)
    : log_(log), telemetry_(telemetry), wrong_secret_log_(log, kWrongSecretLines) {}

// --- Users ---------------------------------------------------------------------------------------

bool AccessControl::refresh(Session& session) const {
  PAWL_ASSERT(users_.has_value());
  if (session.user == nullptr) {
    session.access = wire::Access::kNone;
    return true;
  }
  UserPtr known = users_->find(session.user->name);
  if (known == nullptr || *known != *session.user) return false;
  session.user = std::move(known);
  return true;
}

void AccessControl::reset(Session& session) const {
  session.access = users_ ? wire::Access::kNone : wire::Access::kAdmin;
  session.user = nullptr;
  session.account = 0;
}

bool AccessControl::knows(std::string_view user) const {
  return users_ && users_->find(user) != nullptr;
}

void AccessControl::become(Session& session, UserPtr user) {
  session.access = user->role;
  session.account = account_of(user->name);
  session.user = std::move(user);
}

// Should reloads have brought more names than there are numbers, only the totals bound the rest.
core::AccountId AccessControl::account_of(const std::string& user) {
  if (const auto found = accounts_.find(user); found != accounts_.end()) return found->second;
  if (accounts_.size() == std::numeric_limits<core::AccountId>::max()) return 0;
  const auto account = static_cast<core::AccountId>(accounts_.size() + 1);
  accounts_.emplace(user, account);
  return account;
}

bool AccessControl::identify(Session& session, std::string_view user) {
  UserPtr known = users_ ? users_->find(user) : nullptr;
  if (known == nullptr) return false;
  become(session, std::move(known));
  return true;
}

// --- Authenticating ------------------------------------------------------------------------------

AccessControl::AuthResult AccessControl::authenticate(Session& session, std::string_view user,
                                                      std::string_view secret, Tick now) {
  PAWL_ASSERT(users_.has_value());
  if (user.empty()) return AuthResult::kUserMissing;
  if (UserPtr known = users_->check(user, secret)) {
    become(session, std::move(known));
    return AuthResult::kAuthenticated;
  }
  delay_after_bad_auth(session, now);
  log_wrong_secret(session, user, now);
  return AuthResult::kDelayed;
}

void AccessControl::delay_after_bad_auth(Session& session, Tick now) {
  PAWL_ASSERT(!session.auth_delayed);
  ++telemetry_.wrong_secrets;
  session.auth_delayed = true;
  session.auth_delayed_until = now + kWrongSecretDelay;
  delayed_.emplace(session.auth_delayed_until, session.id());
}

void AccessControl::clear_auth_delay(Session& session) {
  if (!session.auth_delayed) return;
  session.auth_delayed = false;
  const std::size_t erased = delayed_.erase({session.auth_delayed_until, session.id()});
  PAWL_ASSERT(erased == 1);
}

std::optional<ConnectionId> AccessControl::next_delay_over(Tick now) const {
  if (delayed_.empty() || delayed_.begin()->first > now) return std::nullopt;
  return delayed_.begin()->second;
}

Tick AccessControl::next_deadline() const {
  return delayed_.empty() ? kNever : delayed_.begin()->first;
}

// Only names of users that exist are logged: a name that does not may be a secret in the wrong
// place.
void AccessControl::log_wrong_secret(const Session& session, std::string_view user, Tick now) {
  const auto left_out = wrong_secret_log_.admit(now.time_since_epoch());
  if (!left_out) return;
  const bool known = users_->find(user) != nullptr;
  const std::string_view name = known ? user : std::string_view("an unknown user");
  log_.warning(fmt::format("wrong secret for {} from {}{}", name, session.peer(),
                           RateLimitedLog::suffix(*left_out)),
               {{"event", "wrong_secret"},
                {"user", known ? name : std::string_view()},
                {"address", session.address()},
                {"more", *left_out}});
}

// --- Permissions ---------------------------------------------------------------------------------

Refusal AccessControl::check_role(const Session& session, std::string_view name,
                                  wire::Access access) {
  if (wire::permits(session.access, access)) return std::nullopt;
  if (session.user != nullptr) {
    return no_permission(fmt::format("{} needs the role {}; user {} has {}", name, to_text(access),
                                     session.user->name, to_text(session.access)));
  }
  const std::string needed =
      access == wire::Access::kUser ? "a user" : fmt::format("the role {}", to_text(access));
  return wire::WireError{
      wire::ErrorCode::kNoAuth,
      fmt::format(
          "{} needs {}: authenticate first, with AUTH user secret or HELLO 3 AUTH user secret",
          name, needed)};
}

Refusal AccessControl::check_lock(const Session& session, std::string_view lock) {
  if (reaches(session.user, lock)) return std::nullopt;
  return no_permission(fmt::format("lock {} is outside the prefixes of user {}: {}",
                                   wire::shown(lock), session.user->name,
                                   prefixes_of(*session.user)));
}

Refusal AccessControl::check_prefix(const Session& session, std::string_view prefix) {
  if (reaches_below(session.user, prefix)) return std::nullopt;
  return no_permission(fmt::format("prefix {} is outside the prefixes of user {}: {}",
                                   wire::shown(prefix), session.user->name,
                                   prefixes_of(*session.user)));
}

Refusal AccessControl::check_whole_store(const Session& session, std::string_view name) {
  if (!is_limited(session)) return std::nullopt;
  return no_permission(
      fmt::format("{} concerns every lock, and user {} is limited to the prefixes {}", name,
                  session.user->name, prefixes_of(*session.user)));
}

Refusal AccessControl::check_break(const Session& session, const core::LockView& view,
                                   Token token) {
  for (const core::HolderView& holder : view.holders) {
    if (holder.token != token) continue;
    const bool all =
        std::all_of(holder.locks.begin(), holder.locks.end(),
                    [&](const std::string& lock) { return reaches(session.user, lock); });
    if (all) return std::nullopt;
    return no_permission(
        fmt::format("this lease also holds locks outside the prefixes of user {}: {}",
                    session.user->name, prefixes_of(*session.user)));
  }
  return std::nullopt;
}

void AccessControl::hide_locks(const Session& session, std::vector<std::string>& locks) {
  if (!is_limited(session)) return;
  std::erase_if(locks, [&](const std::string& lock) { return !reaches(session.user, lock); });
}

}  // namespace pawl::server
