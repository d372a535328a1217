#include "store/journal/restore.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hex.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "base/random.h"
#include "core/records.h"
#include "pawld/exit_codes.h"
#include "pawld/into_core.h"
#include "pawld/offline.h"
#include "store/journal/backup.h"
#include "store/posix_files.h"

namespace pawl::pawld {
namespace {

struct Restored {
  Incarnation incarnation;
  Token last_token;
  Millis wait{0};
  std::uint64_t void_leases = 0;
};

struct Backup {
  store::journal::BackupMeta meta;
  std::uint64_t leases = 0;
};

// All of it is read and understood before anything is written.
Result<Backup> read(store::Files& files, const std::string& directory) {
  const auto is_one = store::journal::is_backup(files, directory);
  if (!is_one) return is_one.error();
  if (!*is_one) {
    return Error{
        Code::kInvalid,
        directory + ": is no backup (no backup.meta); name a directory that BACKUP made with --from"};
  }
  IntoCore visitor;
  const auto meta = store::journal::read_backup(files, directory, visitor);
  if (!meta) return meta.error();
  if (const auto fits = visitor.core.loaded(Token{meta->last_number}, Now{}); !fits)
    return Error{fits.error().code, directory + ": " + fits.error().detail};
  return Backup{*meta, visitor.core.totals().leases};
}

Result<Restored> make(const Options& options) {
  store::PosixFiles files;
  const RestoreOptions& asked = options.restore;
  const auto backup = read(files, asked.from);
  if (!backup) return backup.error();
  const Token last{std::max(backup->meta.last_number, asked.above)};
  const Millis wait = asked.skip_wait ? Millis(0) : std::max(backup->meta.wait, asked.wait_at_least);
  auto begin = core::restored_records(last, wait);
  if (!begin) return begin.error();
  SystemRandom random;
  const store::journal::Identity identity{Incarnation{random.next()}, backup->meta.segment_bytes};
  store::journal::Beginning beginning;
  beginning.sequence = store::journal::sequence_after(backup->meta.sequence);
  beginning.high_water = begin->last_token.value;
  beginning.records = std::move(begin->records);
  if (auto made = store::journal::make_store(files, options.config.data, identity, std::move(beginning));
      !made)
    return made.error();
  return Restored{identity.incarnation, begin->last_token, wait, backup->leases};
}

void report(const Options& options, const Restored& done) {
  const std::uint64_t era = done.last_token.value / limits::kTokensPerEra;
  if (options.json) {
    std::string directory;
    append_json_text(directory, options.config.data);
    fmt::print(
        R"({{"directory":"{}","incarnation":"{}","era":{},"last_token":{},"void_leases":{},"wait_ms":{}}})"
        "\n",
        directory, to_hex(done.incarnation), era, done.last_token.value, done.void_leases, done.wait.count());
    return;
  }
  fmt::print(
      "restored {} from {}: era {}, the next token is greater than {}; {} leases of the backup are void\n",
      options.config.data, options.restore.from, era, done.last_token.value, done.void_leases);
  if (done.wait > Millis(0)) {
    fmt::print(
        "grants begin {} ms after pawld starts: whoever was granted a lease since the backup must have "
        "lost it first\n",
        done.wait.count());
  }
}

}  // namespace

int restore(const Options& options) {
  const auto done = make(options);
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", done.error().detail);
    return exit_code_of(done.error());
  }
  report(options, *done);
  if (options.restore.skip_wait) {
    fmt::print(
        stderr,
        "pawld: warning: --skip-wait: a lease that was granted after the backup may still be in use when its "
        "lock is granted again; only resources with a guard are safe\n");
  }
  return kExitOk;
}

}  // namespace pawl::pawld
