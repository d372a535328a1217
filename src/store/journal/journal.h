// The journal: the embedded, durable store of one machine. Each batch is committed inline, by one
// write to a prewritten segment; everything else happens beside the loop (maintenance.h). format.h
// describes the files and what makes them valid.
//
//   PosixFiles files;
//   SystemRandom random;
//   auto journal = journal::Journal::open(files, "pawl-data", journal::Settings{}, random);
//   auto loaded = (*journal)->load(visitor);
//   journal::MaintenanceThread maintenance(**journal);   // simulations call background_step()
//   (*journal)->submit(batch, id, sink);
//
// Errors of open() and load():
//   kBusy         another process uses the directory
//   kInvalid      a person must look: the directory is missing, not a store, of a newer format, or
//                 damaged (the detail names file and offset)
//   kUnavailable  no space
//   kUnknown      the disk failed
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "store/file.h"
#include "store/journal/backup_job.h"
#include "store/journal/maintenance.h"
#include "store/journal/segment.h"
#include "store/journal/settings.h"
#include "store/journal/small_files.h"
#include "store/store.h"

namespace pawl::store::journal {

class Journal final : public Store {
 public:
  // Locks `directory`. Creates it, and a store in it, if there is none (unless must_exist). `files`
  // outlives the journal.
  static Result<std::unique_ptr<Journal>> open(Files& files, const std::string& directory,
                                               const Settings& settings, Random& random);

  // --- Store: the loop's thread ------------------------------------------------------------------
  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  // Batches are durable when submit() returns; only backups end later.
  void wake_with(Waker* waker) override { backups_.wake_with(waker); }
  bool has_room() override;
  Result<void> begin_backup(const BackupOrder& order) override;
  std::optional<Result<BackupDone>> finished_backup() override { return backups_.finished(); }
  [[nodiscard]] std::optional<Space> space() const override;
  // Not while a MaintenanceThread or a BackupThread runs.
  Result<void> close() override;
  [[nodiscard]] std::string_view kind() const override { return "journal"; }

  // --- Maintenance: another thread, after load() -------------------------------------------------
  // Does one bounded piece of work; returns false if there was none.
  bool background_step();
  // Measures the free space. Call about once a second.
  void check_space();
  // `wake` is called when there may be new work (see Maintenance::on_work).
  void on_work(std::function<void()> wake);

  // --- Backups: a third thread, after load() -----------------------------------------------------
  // Does one bounded piece of the backup that was begun; returns false if there is none.
  bool backup_step();
  // `wake` is called on the loop's thread when a backup was begun.
  void on_backup(std::function<void()> wake) { wake_backup_ = std::move(wake); }

  // --- The machine mark (small_files.h); before load() -------------------------------------------
  Result<std::optional<std::string>> machine_mark();
  Result<void> set_machine_mark(const std::string& mark);

 private:
  Journal(Files& files, std::string directory, const Settings& settings,
          std::unique_ptr<DirectoryLock> lock, const Identity& identity, bool fresh);

  Result<void> commit(const Batch& batch);
  // Writes a high-water file that covers `covered` and a block of numbers after it.
  Result<void> reserve(std::uint64_t covered);
  // Works even on a full disk: a spare segment is given up for it, because a spare can be made
  // again later and this file cannot wait.
  Result<void> record_high_water(const HighWater& high_water);
  Result<void> switch_segment(std::size_t batch_bytes);
  [[nodiscard]] std::uint64_t last_sequence() const { return chain_.next_sequence - 1; }

  // Constant after construction.
  Files& files_;
  const std::string directory_;
  const Settings settings_;
  const std::unique_ptr<DirectoryLock> lock_;
  const Identity identity_;
  const bool fresh_;

  // Set by load(); the objects synchronize themselves.
  std::unique_ptr<Maintenance> maintenance_;
  BackupSlot backups_;
  std::function<void()> wake_backup_;

  // Set by load(), then used by the loop's thread only.
  std::optional<SegmentWriter> active_;
  AlignedBuffer buffer_;
  ChainPosition chain_;
  // The greatest number covered by a batch.
  std::uint64_t used_ = 0;
  // The greatest number that may be covered before the high-water file must be written again.
  std::uint64_t reserved_end_ = 0;
  std::optional<Error> failure_;
  bool closed_ = false;
};

}  // namespace pawl::store::journal
