#include "server/verbs/verb.h"

namespace pawl::server {

Served Command::done(BatchId after) const {
  services.connections.seal(session, after);
  return Served::kOk;
}

Served Command::error(wire::ErrorCode code, std::string_view text) const {
  services.connections.reply_error(session, code, text);
  return Served::kError;
}

Served Command::answer(const core::Reply& reply, bool by_request) const {
  wire::ReplyWriter writer = session.reply();
  services.replies.write_outcome(writer, reply.outcome, by_request);
  services.connections.seal(session, reply.after);
  return is_error(reply.outcome) ? Served::kError : Served::kOk;
}

}  // namespace pawl::server
