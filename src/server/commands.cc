// The engine's commands: from a parsed request to the core and back to one reply.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "base/version.h"
#include "server/engine.h"
#include "server/handshake.h"
#include "wire/command_docs.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

constexpr std::size_t kPageBytes =
    256 * 1024;  // LOCKS and HISTORY stop growing here, whatever COUNT says.
constexpr std::size_t kPageStep = 16;

}  // namespace

// --- Dispatch ------------------------------------------------------------------------------------

void Engine::serve_command(Session& session, std::span<const std::string_view> args) {
  const wire::Verb* verb = wire::find_verb(args[0]);
  const std::size_t place =
      verb == nullptr ? Telemetry::kUnknown : static_cast<std::size_t>(verb->id);
  if (served_[place]++ == 0) served_verbs_.push_back(static_cast<std::uint8_t>(place));
  command_failed_ = false;
  dispatch(session, verb, args);
  Telemetry::Command& counted = telemetry_.commands[place];
  ++(command_failed_ ? counted.error : counted.ok);
}

void Engine::dispatch(Session& session, const wire::Verb* verb,
                      std::span<const std::string_view> args) {
  if (verb == nullptr) {
    command_failed_ = true;
    session.reply().error(wire::unknown_command(args));
    return seal(session, BatchId{});
  }
  if (refuse_early(session, *verb)) {
    if (verb->id == wire::VerbId::kAcquire) telemetry_.count_refused();
    return;
  }
  const wire::ParsedRequest parsed = parser_.parse(*verb, args, session.protocol);
  if (parsed.error) {
    command_failed_ = true;
    session.reply().error(*parsed.error);
    return seal(session, BatchId{});
  }
  std::visit([&](const auto& request) { handle(session, request); }, parsed.request);
}

bool Engine::refuse_early(Session& session, const wire::Verb& verb) {
  if (loading_ && !verb.while_loading) {
    error(session, wire::ErrorCode::kLoading,
          "pawld is still reading its data; ask again in a moment");
    return true;
  }
  if (refuse_role(session, verb)) return true;
  if (session.observation != nullptr && session.protocol == wire::Protocol::kResp2 &&
      !wire::answered_while_observing(verb.id)) {
    error(session, wire::ErrorCode::kErr,
          fmt::format("{} is not answered on a RESP2 connection that observes: only OBSERVE, "
                      "UNOBSERVE, PING and QUIT; "
                      "use RESP3, or another connection",
                      verb.name));
    return true;
  }
  if (!session.reserved) return false;
  if (sessions_.size() - reserved_ <
      settings_.connections_max) {  // An ordinary connection has closed since.
    session.reserved = false;
    --reserved_;
    return false;
  }
  if (verb.reserved_lane) return false;
  error(session, wire::ErrorCode::kBusy,
        fmt::format("connections: the limit of {} is reached; this one may only RENEW, MRENEW, "
                    "RELEASE and PING",
                    settings_.connections_max));
  return true;
}

// --- Leases --------------------------------------------------------------------------------------

void Engine::handle(Session& session, const AcquireSpec& spec) {
  for (const std::string_view lock : spec.locks) {
    if (refuse_lock(session, lock)) return telemetry_.count_refused();
  }
  const std::string_view request = scoped(session, spec.request);
  if (!store_.has_room() && !core_.remembers(request)) {
    telemetry_.count_refused();
    return error(session, wire::ErrorCode::kFull,
                 "no disk space for new grants; renewals and releases go on");
  }
  core::Acquire input{kDirect, spec, random_.lease_id()};
  input.spec.request = request;
  if (session.hung_up) {
    input.spec.wait = Millis(0);
    input.spec.async = false;
  }
  asking_ = &session;
  if (input.spec.wait == Millis(0)) {
    const core::Reply reply = ask(input);
    count_acquire(reply.outcome);
    write_outcome(session, reply.outcome, true);
    seal(session, reply.after);
  } else if (input.spec.async && session.async_waits >= settings_.async_waits_max &&
             !waits_for(session, spec.request)) {
    telemetry_.count_refused();
    error(session, wire::ErrorCode::kBusy,
          fmt::format("waiters: the limit of {} per ASYNC connection is reached",
                      settings_.async_waits_max));
  } else {
    Wait& wait = waits_.add(session.id(), session.waits);
    wait.async = input.spec.async;
    if (wait.async) {
      wait.request = spec.request;
      ++session.async_waits;
    } else {
      session.blocked = true;
      ++blocked_;
    }
    input.waiter = asking_wait_ = wait.id;
    core_.apply(input, now_);
    route_replies();
  }
  asking_ = nullptr;
  asking_wait_ = {};
}

// Whether this very connection has the wait already: asking again opens no second one.
bool Engine::waits_for(const Session& session, std::string_view request) {
  for (std::uint32_t link = session.waits; link != 0; link = waits_.at(link).next) {
    if (waits_.at(link).request == request) return true;
  }
  return false;
}

void Engine::handle(Session& session, const wire::Cancel& request) {
  const core::Reply reply = ask(core::CancelRequest{kDirect, scoped(session, request.request)});
  write_outcome(session, reply.outcome, true);
  seal(session, reply.after);
}

void Engine::handle(Session& session, const wire::Renew& request) {
  const core::Reply reply = ask(core::Renew{kDirect, request.lease});
  count_renewal(reply.outcome);
  write_outcome(session, reply.outcome, false);
  seal(session, reply.after);
}

// The results are gathered before the first byte is written: a renewal that ends a lease (MAXHOLD)
// may hand its lock to an ASYNC wait of this very connection, and a push must not land inside the
// array.
void Engine::handle(Session& session, const wire::MRenew& request) {
  renewed_.clear();
  BatchId after;
  for (const LeaseId lease : request.leases) {
    const core::Reply reply = ask(core::Renew{kDirect, lease});
    count_renewal(reply.outcome);
    const auto* renewed = std::get_if<core::Renewed>(&reply.outcome);
    renewed_.push_back(renewed != nullptr ? renewed->left.count() : -1);
    after = std::max(after, reply.after);
  }
  wire::ReplyWriter reply = session.reply();
  reply.array(renewed_.size());
  for (const std::int64_t left : renewed_) reply.integer(left);
  seal(session, after);
}

void Engine::handle(Session& session, const wire::Release& request) {
  const core::Reply reply = ask(core::Release{kDirect, request.lease});
  count_release(request.lease, reply.outcome);
  write_outcome(session, reply.outcome, false);
  seal(session, reply.after);
}

void Engine::handle(Session& session, const wire::Break& request) {
  if (refuse_breaking(session, request)) return;
  const core::Reply reply =
      ask(core::Break{kDirect, request.lock, request.token, request.now, request.reason});
  const auto* done = std::get_if<core::BreakDone>(&reply.outcome);
  const bool was_live = done != nullptr && done->was_live;
  if (was_live) ++telemetry_.breaks;
  const std::string what =
      fmt::format("BREAK{} of token {} on {} by {}", request.now ? " NOW" : "", request.token.value,
                  wire::shown(request.lock), describe(session));
  const std::string reason = wire::shown(request.reason);
  const std::string line = was_live
                               ? fmt::format("{}: {}", what, reason)
                               : fmt::format("{} did nothing: that token does not hold it", what);
  log_.write_with(was_live ? LogLevel::kWarning : LogLevel::kInfo, line,
                  {{"event", was_live ? "break" : "break_without_effect"},
                   {"lock", request.lock},
                   {"token", request.token.value},
                   {"user", user_of(session)},
                   {"address", session.peer()},
                   {"reason", request.reason}});
  write_outcome(session, reply.outcome, false);
  seal(session, reply.after);
}

void Engine::handle(Session& session, const wire::Raise& request) {
  if (refuse_whole_store(session, "RAISE")) return;
  const core::Reply reply = ask(core::Raise{kDirect, request.token, request.reason});
  const bool raised = std::holds_alternative<core::Raised>(reply.outcome);
  log_.write_with(raised ? LogLevel::kWarning : LogLevel::kInfo,
                  fmt::format("RAISE to {} by {}{}: {}", request.token.value, describe(session),
                              raised ? "" : " was refused", wire::shown(request.reason)),
                  {{"event", raised ? "raise" : "raise_refused"},
                   {"token", request.token.value},
                   {"user", user_of(session)},
                   {"address", session.peer()},
                   {"reason", request.reason}});
  write_outcome(session, reply.outcome, false);
  seal(session, reply.after);
}

// --- Questions: they wait for the writes before them ---------------------------------------------

void Engine::handle(Session& session, const wire::Inspect& request) {
  if (refuse_lock(session, request.lock)) return;
  core::LockView view = core_.inspect(request.lock, now_);
  for (core::HolderView& holder : view.holders) hide(session, holder.locks);
  wire::ReplyWriter reply = session.reply();
  write_lock(reply, view);
  seal(session, core_.last_batch());
}

void Engine::handle(Session& session, const wire::Locks& request) {
  std::uint64_t cursor = 0;
  const char* end = request.cursor.data() + request.cursor.size();
  const auto [stop, problem] = std::from_chars(request.cursor.data(), end, cursor);
  if (problem != std::errc() || stop != end) {
    return error(session, wire::ErrorCode::kErr,
                 "CURSOR must be 0 or what an earlier LOCKS answered");
  }
  if (refuse_beginning(session, request.prefix)) return;
  core::NameFilter visible;
  if (session.user != nullptr && !session.user->prefixes.empty())
    visible = [&session](std::string_view lock) { return reaches(session.user, lock); };
  std::string locks;
  wire::ReplyWriter writer(locks, session.protocol);
  std::size_t count = 0;
  do {
    core::LocksPage page = core_.list(request.prefix, cursor,
                                      std::min(request.count - count, kPageStep), now_, visible);
    for (core::LockView& view : page.locks) {
      for (core::HolderView& holder : view.holders) hide(session, holder.locks);
      write_lock(writer, view);
    }
    count += page.locks.size();
    cursor = page.cursor;
    if (page.locks.empty()) break;  // The core has looked at enough for one call.
  } while (cursor != 0 && count < request.count && locks.size() < kPageBytes);
  wire::ReplyWriter reply = session.reply();
  reply.array(2);
  reply.bulk(fmt::format_int(cursor).str());
  reply.array(count);
  reply.raw(locks);
  seal(session, core_.last_batch());
}

void Engine::handle(Session& session, const wire::History& request) {
  if (refuse_lock(session, request.lock)) return;
  std::string epochs;
  wire::ReplyWriter writer(epochs, session.protocol);
  std::size_t count = 0;
  for (core::EpochView& epoch : core_.history(request.lock, request.count)) {
    if (epochs.size() >= kPageBytes) break;  // The oldest are left out.
    hide(session, epoch.locks);
    write_epoch(writer, epoch);
    ++count;
  }
  wire::ReplyWriter reply = session.reply();
  reply.array(count);
  reply.raw(epochs);
  seal(session, core_.last_batch());
}

StatusView Engine::status() const {
  StatusView view;
  view.version = kVersion;
  view.store = store_.kind();
  view.state = state();
  view.active = settings_.address;
  view.incarnation = loaded_.incarnation;
  view.totals = core_.totals();
  view.restoring = restoring();
  view.uptime = std::chrono::floor<Millis>(clock_.uptime());
  view.paused = std::chrono::floor<Millis>(clock_.paused());
  view.connections = sessions_.size();
  view.blocked = blocked_;
  view.counters = counters_;
  return view;
}

void Engine::handle(Session& session, const wire::Status&) {
  wire::ReplyWriter reply = session.reply();
  write_status(reply, status());
  seal(session, core_.last_batch());
}

void Engine::handle(Session& session, const wire::Info&) {
  session.reply().verbatim(info_text(status()));
  seal(session, core_.last_batch());
}

// --- Handshake -----------------------------------------------------------------------------------

void Engine::handle(Session& session, const wire::Client& request) {
  using Op = wire::Client::Op;
  wire::ReplyWriter reply = session.reply();
  switch (request.op) {
    case Op::kId:
      reply.integer(static_cast<std::int64_t>(session.id().value));
      break;
    case Op::kGetName:
      session.name.empty() ? reply.null() : reply.bulk(session.name);
      break;
    case Op::kSetName:
      session.name = request.text;
      reply.ok();
      break;
    case Op::kSetInfo:
      (wire::is_word(request.attribute, "LIB-NAME") ? session.library : session.library_version) =
          request.text;
      reply.ok();
      break;
    case Op::kInfo:
      reply.verbatim(client_line(session, now_.tick) + "\n");
      break;
    case Op::kList: {
      std::vector<const Session*> sessions;
      for (const auto& [id, other] :
           sessions_) {  // Others than admins see connections of their own user.
        if (session.access == wire::Access::kAdmin || other->user == session.user)
          sessions.push_back(other.get());
      }
      std::sort(sessions.begin(), sessions.end(),
                [](const auto* a, const auto* b) { return a->id() < b->id(); });
      std::string lines;
      for (const Session* other : sessions) lines += client_line(*other, now_.tick) + "\n";
      reply.verbatim(lines);
      break;
    }
  }
  seal(session, BatchId{});
}

void Engine::handle(Session& session, const wire::Command& request) {
  wire::ReplyWriter reply = session.reply();
  wire::write_command_reply(reply, request);
  seal(session, BatchId{});
}

void Engine::handle(Session& session, const wire::Help& request) {
  wire::ReplyWriter reply = session.reply();
  wire::write_help(reply, request);
  seal(session, BatchId{});
}

void Engine::handle(Session& session, const wire::Time&) {
  wire::ReplyWriter reply = session.reply();
  reply.array(2);
  reply.bulk(fmt::format_int(now_.wall.value / 1000).str());
  reply.bulk(fmt::format_int(now_.wall.value % 1000 * 1000).str());
  seal(session, BatchId{});
}

void Engine::handle(Session& session, const wire::Reset& request) {
  drop_waits(session);  // As after a hang-up: without pushes.
  cancel_dropped();
  stop_observing(session);
  become_nobody(session);
  answer(session, request);
  seal(session, BatchId{});
}

void Engine::handle(Session& session, std::monostate) {
  error(session, wire::ErrorCode::kErr, "not understood");
}

template <class Handshake>
void Engine::handle(Session& session, const Handshake& request) {
  answer(session, request);
  seal(session, BatchId{});
}

// --- Replies -------------------------------------------------------------------------------------

template <class Input>
core::Reply Engine::ask(const Input& input) {
  answered_ = false;
  core_.apply(input, now_);
  route_replies();
  PAWL_ASSERT(answered_);
  return direct_;
}

}  // namespace pawl::server
