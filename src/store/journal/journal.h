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

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/file.h"
#include "store/journal/backup_job.h"
#include "store/journal/high_water.h"
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
  ~Journal() override;

  // --- Store: the loop's thread ------------------------------------------------------------------
  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  // Batches are durable when submit() returns. Only one for which there is no space, nor any other
  // resource that may return, waits: nothing of it was written, and pump() tries again.
  void pump(Sink& sink) override;
  void wake_with(Waker* waker) override { waker_.store(waker); }
  bool has_room() override;
  bool prepare_grant() override;
  [[nodiscard]] Damage damage() const override;
  [[nodiscard]] bool wants_state() const override;
  void take_state(const Batch& state) override;
  Result<void> begin_backup(const BackupOrder& order) override;
  std::optional<Result<BackupDone>> finished_backup() override;
  [[nodiscard]] std::uint64_t backup_steps() const override;
  void abandon_backup() override;
  [[nodiscard]] std::optional<Space> space() const override;
  // Not while a MaintenanceThread or BackupThreads run.
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
  // Does one bounded piece of the backup that was begun; returns false if there is none. For
  // simulations, which have no thread for it.
  bool backup_step();
  // `run` is called on the loop's thread with each backup that was begun.
  void on_backup(std::function<void(const std::shared_ptr<BackupRun>&)> run) {
    run_backup_ = std::move(run);
  }

  // --- The machine mark (small_files.h); before load() -------------------------------------------
  Result<std::optional<std::string>> machine_mark();
  Result<void> set_machine_mark(const std::string& mark);

 private:
  Journal(Files& files, std::string directory, const Settings& settings,
          std::unique_ptr<DirectoryLock> lock, const Identity& identity, bool fresh);

  // A batch for which there was no space.
  struct Waiting {
    Batch batch;
    BatchId id;
  };

  // kUnavailable: nothing was written.
  Result<void> commit(const Batch& batch);
  // Reserves `covered` and a block of numbers after it. kUnavailable: what was reserved before
  // still counts.
  Result<void> reserve(std::uint64_t covered);
  // Reserves a block ahead of the numbers that are used, unless it lacks space.
  bool reserve_ahead();
  // Gives up a spare segment for it on a full disk, because a spare can be made again later.
  Result<void> with_space_of_a_spare(const std::function<Result<void>()>& write);
  Result<void> switch_segment(std::size_t batch_bytes);
  // kBusy if a backup that was given up keeps `directory`, or if there are too many of them.
  Result<void> check_given_up(const std::string& directory);
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
  std::atomic<Waker*> waker_ = nullptr;
  std::atomic<bool> batches_wait_ = false;
  std::function<void(const std::shared_ptr<BackupRun>&)> run_backup_;

  // Set by load(), then used by the loop's thread only.
  std::optional<HighWaterFile> high_water_;
  std::optional<SegmentWriter> active_;
  std::deque<Waiting> waiting_;
  std::shared_ptr<BackupRun> backup_;  // From begin_backup() until its outcome was returned.
  // Those that were given up, and may still hang.
  std::vector<std::weak_ptr<BackupRun>> given_up_;
  AlignedBuffer buffer_;
  ChainPosition chain_;
  // The greatest number covered by a batch.
  std::uint64_t used_ = 0;
  // The greatest number that may be covered before the high-water file must be written again.
  std::uint64_t reserved_end_ = 0;
  // The space check after which a reservation failed; 0: the last one succeeded.
  std::uint64_t unreserved_since_ = 0;
  std::optional<Error> failure_;
  bool closed_ = false;
};

}  // namespace pawl::store::journal
