#include "pawld/restore_backup.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/records.h"
#include "server/core_loader.h"
#include "store/journal/backup.h"
#include "store/journal/create.h"

namespace pawl::pawld {
namespace {

struct Backup {
  store::journal::BackupMeta meta;
  std::uint64_t leases = 0;
};

Result<Backup> read_and_check(store::Files& files, const std::string& directory) {
  const auto is_one = store::journal::is_backup(files, directory);
  if (!is_one) return is_one.error();
  if (!*is_one) {
    return Error{
        Code::kInvalid,
        directory +
            ": is not a backup (no backup.meta); pass a directory that BACKUP made with --from"};
  }
  // The core knows what the records mean and whether they contradict each other.
  core::Core core;
  server::CoreLoader loader(core);
  const auto meta = store::journal::read_backup(files, directory, loader);
  if (!meta) return meta.error();
  if (const auto loaded = core.loaded(Token{meta->last_number}, Now{}); !loaded)
    return Error{loaded.error().code, directory + ": " + loaded.error().detail};
  return Backup{*meta, core.totals().leases};
}

}  // namespace

Result<RestorePlan> plan_restore(store::Files& files, Random& random,
                                 const RestoreOptions& options) {
  const auto backup = read_and_check(files, options.from);
  if (!backup) return backup.error();
  const Token last{std::max(backup->meta.last_number, options.above)};
  const Millis wait =
      options.skip_wait ? Millis(0) : std::max(backup->meta.wait, options.wait_at_least);
  auto restored = core::restored_records(last, wait);
  if (!restored) return restored.error();
  PAWL_ASSERT(restored->last_token >= last);
  return RestorePlan{
      .restored = {Incarnation{random.next()}, restored->last_token, wait, backup->leases},
      .segment_bytes = backup->meta.segment_bytes,
      .sequence = store::journal::sequence_after(backup->meta.sequence),
      .records = std::move(restored->records)};
}

Result<Restored> restore_backup(store::Files& files, Random& random, const RestoreOptions& options,
                                const std::string& directory) {
  auto plan = plan_restore(files, random, options);
  if (!plan) return plan.error();
  store::journal::InitialState initial;
  initial.sequence = plan->sequence;
  initial.high_water = plan->restored.last_token.value;
  initial.records = std::move(plan->records);
  if (auto created = store::journal::create_restored_store(
          files, directory, {plan->restored.incarnation, plan->segment_bytes}, std::move(initial));
      !created)
    return created.error();
  return plan->restored;
}

}  // namespace pawl::pawld
