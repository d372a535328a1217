#include "server/backups.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/limits.h"

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

std::string failure_text(const Error& error) {
  return "backup: nothing was kept: " + error.detail;
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

void Backups::order(Session& session, store::BackupOrder order) {
  PAWL_ASSERT(!busy());
  current_ = Current{.order = std::move(order),
                     .connection = session.id(),
                     .requester = session.description(),
                     .user = std::string(session.user_name()),
                     .address = std::string(session.address())};
  session.backing_up = true;
  connections_.block(session);
  log_.info(
      fmt::format("BACKUP to {} by {} begins", current_->order.directory, current_->requester),
      {{"event", "backup_begins"},
       {"directory", current_->order.directory},
       {"user", current_->user},
       {"address", current_->address}});
}

void Backups::begin_ordered() {
  if (!current_ || current_->begun) return;
  if (const auto begun = store_.begin_backup(current_->order); !begun) return finish(begun.error());
  current_->begun = true;
}

void Backups::collect_finished(Tick now) {
  if (!current_ || !current_->begun) return;
  if (const auto finished = store_.finished_backup()) return finish(*finished);
  const std::uint64_t steps = store_.backup_steps();
  if (current_->progress == kNever || current_->steps != steps) {
    current_->steps = steps;
    current_->progress = now;
  }
  if (now < next_deadline()) return;
  store_.abandon_backup();
  finish(Error{Code::kUnknown,
               fmt::format("{}: its disk has not answered for {} s; the backup was abandoned, and "
                           "may have left {}.partial",
                           current_->order.directory, limits::kBackupStallMax.count() / 1000,
                           current_->order.directory)});
}

Tick Backups::next_deadline() const {
  if (!current_ || current_->progress == kNever) return kNever;
  return current_->progress + limits::kBackupStallMax;
}

void Backups::finish(const Result<store::BackupDone>& outcome) {
  const Current backup = *std::exchange(current_, std::nullopt);
  if (outcome) telemetry_.last_backup = backup.order.at;
  log_outcome(log_, backup, outcome);
  Session* session = connections_.find(backup.connection);
  if (session == nullptr) return;  // It has closed.
  session->backing_up = false;
  connections_.unblock(*session);
  if (outcome) {
    wire::ReplyWriter reply = session->reply();
    write_backup(reply, backup.order.directory, *outcome);
    connections_.seal(*session, BatchId{});
  } else {
    connections_.reply_error(*session, code_of(outcome.error().code),
                             failure_text(outcome.error()));
  }
  connections_.mark_ready(*session);
}

void Backups::log_outcome(Log& log, const Current& backup,
                          const Result<store::BackupDone>& outcome) {
  const std::string& directory = backup.order.directory;
  if (outcome) {
    log.info(
        fmt::format("BACKUP to {} by {} completed: {} records, {} bytes, last token {}", directory,
                    backup.requester, outcome->records, outcome->bytes, outcome->last_number),
        {{"event", "backup"},
         {"directory", directory},
         {"user", backup.user},
         {"address", backup.address},
         {"records", outcome->records},
         {"bytes", outcome->bytes},
         {"last_token", outcome->last_number}});
  } else {
    log.error(fmt::format("BACKUP to {} by {} failed; {}", directory, backup.requester,
                          failure_text(outcome.error())),
              {{"event", "backup_failed"},
               {"directory", directory},
               {"user", backup.user},
               {"address", backup.address}});
  }
}

}  // namespace pawl::server
