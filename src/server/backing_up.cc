// BACKUP: the store makes it beside the loop; whoever asked waits, as in a blocking WAIT, and
// nobody else does. It goes on when the asker hangs up: it is whole or nothing either way, and the
// log tells of it.
#include <fmt/format.h>

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

void write_backup(wire::ReplyWriter& reply, const std::string& directory,
                  const store::BackupDone& done) {
  reply.map(6);
  reply.field("dir", directory);
  reply.field("files", done.files);
  reply.field("bytes", done.bytes);
  reply.field("records", done.records);
  reply.field("last_token", done.last_number);
  reply.field("sequence", done.sequence);
}

}  // namespace

// What was read before it in this turn is to be in it, so it begins when that is submitted.
void Engine::handle(Session& session, const wire::Backup& request) {
  if (refuse_whole_store(session, "BACKUP")) return;
  if (backing_up_)
    return error(session, wire::ErrorCode::kBusy, "backup: one is under way; one at a time");
  backup_ = {std::string(request.directory), settings_.ttl_max, now_.wall,
             fmt::format("pawld {}", kVersion)};
  backup_for_ = session.id();
  backing_up_ = true;
  session.blocked = session.backing_up = true;
  ++blocked_;
  backup_by_ = describe(session);
  log_.info(fmt::format("BACKUP to {} by {} begins", backup_.directory, backup_by_),
            {{"event", "backup_begins"},
             {"directory", backup_.directory},
             {"user", user_of(session)},
             {"address", session.peer()}});
}

void Engine::begin_backup() {
  if (const auto begun = store_.begin_backup(backup_); !begun) return end_backup(begun.error());
  backup_begun_ = true;
}

void Engine::tell_of_backup() {
  if (const auto finished = store_.finished_backup()) end_backup(*finished);
}

void Engine::end_backup(const Result<store::BackupDone>& outcome) {
  backing_up_ = backup_begun_ = false;
  const std::string text = outcome ? "" : "backup: nothing was kept: " + outcome.error().detail;
  if (outcome) {
    telemetry_.last_backup = backup_.at;
    log_.info(fmt::format("BACKUP to {} by {} is whole: {} records, {} bytes, last token {}",
                          backup_.directory, backup_by_, outcome->records, outcome->bytes,
                          outcome->last_number),
              {{"event", "backup"},
               {"directory", backup_.directory},
               {"by", backup_by_},
               {"records", outcome->records},
               {"bytes", outcome->bytes},
               {"last_token", outcome->last_number}});
  } else {
    log_.error(fmt::format("BACKUP to {} by {} failed; {}", backup_.directory, backup_by_, text),
               {{"event", "backup_failed"}, {"directory", backup_.directory}, {"by", backup_by_}});
  }
  Session* session = find(backup_for_);
  if (session == nullptr) return;  // It has left.
  session->blocked = session->backing_up = false;
  --blocked_;
  if (outcome) {
    wire::ReplyWriter reply = session->reply();
    write_backup(reply, backup_.directory, *outcome);
    seal(*session, BatchId{});
  } else {
    error(*session, code_of(outcome.error().code), text);
  }
  mark_ready(*session);
}

}  // namespace pawl::server
