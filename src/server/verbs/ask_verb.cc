#include "server/verbs/ask_verb.h"

#include <fmt/format.h>

#include <array>

#include "wire/text.h"

namespace pawl::server {
namespace {

// What holders and observers are told. The label proves nothing, the user does.
std::string asker(const Session& session, std::string_view owner) {
  if (session.user == nullptr) return std::string(owner.empty() ? session.address() : owner);
  return owner.empty() ? session.user->name : fmt::format("{} ({})", session.user->name, owner);
}

void log_ask(const Command& command, const AskRequest& request) {
  const Session& session = command.session;
  std::string line =
      fmt::format("ASK for {} by {}", wire::shown(request.lock), session.description());
  if (!request.owner.empty()) line += fmt::format(" ({})", wire::shown(request.owner));
  if (!request.reason.empty()) line += fmt::format(": {}", wire::shown(request.reason));
  command.services.log.info(line, {{"event", "ask"},
                                   {"lock", request.lock},
                                   {"user", session.user_name()},
                                   {"owner", request.owner},
                                   {"address", session.address()},
                                   {"reason", request.reason}});
}

Served ask(Command& command, const AskRequest& request) {
  if (const Refusal refusal = AccessControl::check_lock(command.session, request.lock))
    return command.error(*refusal);
  const std::string by = asker(command.session, request.owner);
  const core::Reply reply = command.services.replies.ask(
      core::Ask{kDirect, request.lock, by, request.reason, command.session.account}, command.now);
  if (const auto* done = std::get_if<core::AskDone>(&reply.outcome)) {
    ++command.services.telemetry.asks[static_cast<std::size_t>(done->state)];
    if (done->state == core::AskDone::State::kAsked) log_ask(command, request);
  }
  return command.answer(reply);
}

constexpr std::array kAskParameters{kLockInPath};
constexpr std::array kAskAnswers{
    HttpAnswer{200, "Asked", "asked, asked already, or not held: state says which"}};
constexpr HttpRoute kAskRoute{
    .method = "POST",
    .path = "/v1/locks/{name}/ask",
    .id = "ask",
    .summary = "ask the holders of a lock to let go: they are told with their next renewals",
    .parameters = kAskParameters,
    .body = "AskRequest",
    .answers = kAskAnswers,
    .example =
        R"(-H 'Content-Type: application/json' -d '{"reason":"a deployment waits"}' http://127.0.0.1:7296/v1/locks/reports%2Fnightly/ask)",
};

}  // namespace

AskRequest parse_ask(wire::ArgReader& in) {
  AskRequest request{.lock = in.lock(), .owner = {}, .reason = {}};
  while (in.more()) {
    if (in.option("OWNER")) {
      request.owner = in.text("OWNER", {1, limits::kOwnerMax});
    } else if (in.option("REASON")) {
      request.reason = in.text("REASON", {1, limits::kReasonMax});
    } else {
      in.refuse_rest();
    }
  }
  return request;
}

// Whoever may acquire the lock may ask for it: an ask makes holders end their work early.
constinit const Verb kAsk{
    .name = "ASK",
    .arity = -2,
    .access = wire::Access::kUse,
    .group = "lock",
    .usage = "lock [OWNER text] [REASON text]",
    .summary =
        "ask the holders of a lock to let go: they are told with their next renewals (RENEW and "
        "MRENEW with ASKS), and decide themselves; nothing is stored",
    .reply =
        "map: state (asked; already_asked: less than a second ago, and that ask stands; not_held), "
        "holders (how many were asked), token (the greatest of theirs; null when not held)",
    .example = "ASK reports/nightly OWNER deploy@host:77 REASON \"a deployment waits\"",
    .handler = kHandler<parse_ask, ask>,
    .http = &kAskRoute,
};

}  // namespace pawl::server
