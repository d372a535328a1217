// The journal: the embedded, durable store of one machine. Batches are committed inline, each by
// one write to a prewritten segment; everything else happens beside the loop (housekeeper.h).
// format.h has the files and what makes them valid.
//
//   PosixFiles files;  SystemRandom random;
//   auto journal = journal::Journal::open(files, "pawl-data", journal::Settings{}, random);
//   auto loaded = (*journal)->load(visitor);
//   journal::JournalThread helper(**journal);          // or background_step() by hand, as simulations do
//   (*journal)->submit(batch, id, sink);
//
// Errors of open and load: kBusy: another process uses the directory. kInvalid: a person must look:
// the directory is missing, foreign, of a newer format, or damaged (the detail names file and
// offset). kUnavailable: no space. kUnknown: the disk failed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "store/file.h"
#include "store/journal/backup_desk.h"
#include "store/journal/high_water.h"
#include "store/journal/housekeeper.h"
#include "store/journal/identity.h"
#include "store/journal/segment.h"
#include "store/journal/settings.h"
#include "store/store.h"

namespace pawl::store::journal {

class Journal final : public Store {
 public:
  // Locks `directory`, creating it and a store in it where there is none (unless must_exist).
  // `files` outlives the journal.
  static Result<std::unique_ptr<Journal>> open(Files& files, const std::string& directory,
                                               const Settings& settings, Random& random);

  // --- Store; the loop's thread ------------------------------------------------------------------
  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  // Batches are durable when submit() returns; only backups end later.
  void wake_with(Waker* waker) override { backups_.wake_with(waker); }
  bool has_room() override;
  Result<void> begin_backup(const BackupOrder& order) override;
  std::optional<Result<BackupDone>> finished_backup() override { return backups_.finished(); }
  [[nodiscard]] std::optional<Space> space() const override;
  Result<void> close() override;  // Not while a JournalThread or BackupThread runs.
  [[nodiscard]] std::string_view kind() const override { return "journal"; }

  // --- The helper; another thread, after load() --------------------------------------------------
  // Does one bounded piece of background work; false when there was none.
  bool background_step();
  // Looks at the free space. About once a second.
  void check_space();
  // `wake` is called from the loop's thread when there may be new background work.
  void on_work(std::function<void()> wake);

  // --- Backups; a thread of their own, after load() ----------------------------------------------
  // Does one bounded piece of the backup that was begun; false when there is none.
  bool backup_step();
  // `wake` is called from the loop's thread when there is one.
  void on_backup(std::function<void()> wake) { wake_backup_ = std::move(wake); }

  // The machine it was used on last, and another one (machine_file.h); before load().
  Result<std::optional<std::string>> machine();
  Result<void> set_machine(const std::string& machine);

 private:
  Journal(Files& files, std::string directory, const Settings& settings,
          std::unique_ptr<DirectoryLock> lock, const Identity& identity, bool fresh);

  Result<void> commit(const Batch& batch);
  Result<void> reserve(std::uint64_t covered);
  // Writes the high-water file even on a full disk: a segment that is only written ahead can wait,
  // this cannot.
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

  // Set by load(), touched by the loop's thread only (the housekeeper guards itself).
  std::unique_ptr<Housekeeper> housekeeper_;
  BackupDesk backups_;  // Guards itself.
  std::function<void()> wake_backup_;
  std::optional<SegmentWriter> active_;
  AlignedBuffer buffer_;
  ChainPosition chain_;
  std::uint64_t used_ = 0;  // The greatest number covered.
  std::uint64_t reserved_end_ =
      0;  // The greatest that may be covered without writing the high-water file first.
  std::optional<Error> failure_;
  bool closed_ = false;
};

}  // namespace pawl::store::journal
