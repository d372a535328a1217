// BACKUP: the store makes it beside the loop; whoever asked waits, as in a blocking WAIT, and nobody else does. It goes on
// when the asker hangs up: it is whole or nothing either way, and the log tells of it.
#include <fmt/format.h>

#include <utility>

#include "base/version.h"
#include "server/engine.h"

namespace pawl::server {
namespace {

wire::ErrorCode code_of(Code code) {
  switch (code) {
    case Code::kUnavailable:
      return wire::ErrorCode::kFull;
    case Code::kBusy:
      return wire::ErrorCode::kBusy;
    default:
      return wire::ErrorCode::kErr;
  }
}

void write_backup(wire::ReplyWriter& reply, const std::string& directory, const store::BackupDone& done) {
  reply.map(6);
  reply.field("dir", directory);
  reply.field("files", done.files);
  reply.field("bytes", done.bytes);
  reply.field("records", done.records);
  reply.field("last_token", done.last_number);
  reply.field("sequence", done.sequence);
}

}  // namespace

void Engine::handle(Session& session, const wire::Backup& request) {
  if (refuse_whole_store(session, "BACKUP")) return;
  store::BackupOrder order{std::string(request.directory), settings_.ttl_max, now_.wall,
                           fmt::format("pawld {}", kVersion)};
  const auto begun = store_.begin_backup(order);
  if (!begun) return error(session, code_of(begun.error().code), "backup: " + begun.error().detail);
  log_.info(fmt::format("BACKUP to {} by {} begins", request.directory, session.peer()));
  backing_up_ = true;
  backup_for_ = session.id();
  backup_directory_ = std::move(order.directory);
  session.blocked = session.backing_up = true;
  ++blocked_;
}

// Each turn while one is under way. What is submitted in this turn is no part of it, so it waits for no batch.
void Engine::tell_of_backup() {
  const auto finished = store_.finished_backup();
  if (!finished) return;
  backing_up_ = false;
  const std::string text = *finished ? "" : "backup: nothing was kept: " + finished->error().detail;
  if (*finished) {
    log_.info(fmt::format("BACKUP to {} is whole: {} records, {} bytes, last token {}", backup_directory_,
                          (*finished)->records, (*finished)->bytes, (*finished)->last_number));
  } else {
    log_.error(fmt::format("BACKUP to {} failed; {}", backup_directory_, text));
  }
  Session* session = find(backup_for_);
  if (session == nullptr) return;  // It has left.
  session->blocked = session->backing_up = false;
  --blocked_;
  if (*finished) {
    wire::ReplyWriter reply = session->reply();
    write_backup(reply, backup_directory_, **finished);
    seal(*session, BatchId{});
  } else {
    error(*session, code_of(finished->error().code), text);
  }
  mark_ready(*session);
}

}  // namespace pawl::server
