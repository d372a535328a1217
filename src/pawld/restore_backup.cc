#include "pawld/restoring.h"

#include <algorithm>
#include <utility>

#include "core/records.h"
#include "pawld/into_core.h"
#include "store/journal/backup.h"
#include "store/journal/restore.h"

namespace pawl::pawld {
namespace {

struct Backup {
  store::journal::BackupMeta meta;
  std::uint64_t leases = 0;
};

Result<Backup> read(store::Files& files, const std::string& directory) {
  const auto is_one = store::journal::is_backup(files, directory);
  if (!is_one) return is_one.error();
  if (!*is_one) {
    return Error{
        Code::kInvalid,
        directory +
            ": is no backup (no backup.meta); name a directory that BACKUP made with --from"};
  }
  IntoCore visitor;
  const auto meta = store::journal::read_backup(files, directory, visitor);
  if (!meta) return meta.error();
  if (const auto fits = visitor.core.loaded(Token{meta->last_number}, Now{}); !fits)
    return Error{fits.error().code, directory + ": " + fits.error().detail};
  return Backup{*meta, visitor.core.totals().leases};
}

}  // namespace

Result<Restored> make_from_backup(store::Files& files, Random& random, const RestoreOptions& asked,
                                  const std::string& directory) {
  const auto backup = read(files, asked.from);
  if (!backup) return backup.error();
  const Token last{std::max(backup->meta.last_number, asked.above)};
  const Millis wait =
      asked.skip_wait ? Millis(0) : std::max(backup->meta.wait, asked.wait_at_least);
  auto begin = core::restored_records(last, wait);
  if (!begin) return begin.error();
  const store::journal::Identity identity{Incarnation{random.next()}, backup->meta.segment_bytes};
  store::journal::Beginning beginning;
  beginning.sequence = store::journal::sequence_after(backup->meta.sequence);
  beginning.high_water = begin->last_token.value;
  beginning.records = std::move(begin->records);
  if (auto made = store::journal::make_store(files, directory, identity, std::move(beginning));
      !made)
    return made.error();
  return Restored{identity.incarnation, begin->last_token, wait, backup->leases};
}

}  // namespace pawl::pawld
