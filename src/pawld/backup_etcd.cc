// `pawld backup` and `pawld restore --store etcd`: between a cluster in etcd and a backup directory,
// which is the same as that of a journal. So a store moves from one kind to the other by a backup
// and a restore, and tokens grow (design rule 9).
#include <fmt/format.h>

#include "base/batch.h"
#include "base/version.h"
#include "pawld/commands.h"
#include "pawld/etcd_access.h"
#include "pawld/exit_codes.h"
#include "pawld/open_store.h"
#include "server/service_clock.h"
#include "store/journal/backup.h"
#include "store/posix_files.h"

namespace pawl::pawld {
namespace {

using store::cluster::Head;
using store::cluster::HeadState;

Result<store::BackupDone> back_up(const Options& options) {
  auto access = EtcdAccess::open(options.config);
  if (!access) return access.error();
  if (auto read = (*access)->read(); !read) return read.error();
  const Head* head = (*access)->head();
  if (head == nullptr)
    return Error{Code::kInvalid, "there is no store of this cluster in etcd: nothing to back up"};
  store::journal::BackupMeta meta;
  meta.incarnation = head->incarnation;
  meta.sequence = head->sequence;
  meta.last_number = head->covered;
  meta.segment_bytes = options.config.journal.segment_bytes;
  // A lease that is granted after the backup lives for its TTL and keeps its lock for its DELAY.
  meta.wait = options.config.max_ttl + options.config.max_delay;
  meta.at = server::SystemClock().read().wall;
  meta.writer = fmt::format("pawld {}", kVersion);
  store::PosixFiles files;
  return store::journal::write_backup(files, options.backup_to, std::move(meta),
                                      (*access)->take_records());
}

// One entry with all records, and a head that says that whoever reads it may take over.
store::cluster::SharedLog::Write first_write(const RestorePlan& plan, Random& random) {
  Batch batch;
  for (const auto& [key, value] : plan.records) batch.put(key, value);
  Head head{.state = HeadState::kResigned, .incarnation = plan.restored.incarnation};
  head.epoch = head.n = head.last = 1;
  head.writer = {random.next(), random.next()};
  head.covered = plan.restored.last_token.value;
  head.sequence = plan.sequence;
  store::cluster::EncodedEntry entry =
      store::cluster::encode_entry({.previous_crc = 0,
                                    .incarnation = head.incarnation,
                                    .epoch = head.epoch,
                                    .number = head.last,
                                    .sequence = head.sequence},
                                   "", batch.bytes());
  head.last_crc = entry.crc;
  return {.expected = "",
          .head = store::cluster::encode_head(head),
          .entry = head.last,
          .bytes = std::move(entry.bytes)};
}

}  // namespace

int backup_etcd(const Options& options) {
  const auto done = back_up(options);
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", with_advice(done.error(), options.config));
    return exit_code_of(done.error());
  }
  report_backup(options, *done);
  return kExitOk;
}

Result<Restored> restore_into_etcd(const Options& options) {
  auto access = EtcdAccess::open(options.config);
  if (!access) return access.error();
  if (auto read = (*access)->read(); !read) return read.error();
  if ((*access)->head() != nullptr || (*access)->has_entries()) {
    const std::string& cluster = (*access)->cluster();
    return Error{
        Code::kInvalid,
        fmt::format("there is a store of cluster {0} in etcd. Choose another --cluster; or, to "
                    "replace it, stop every pawld of it, back it up (pawld backup), and delete it: "
                    "etcdctl del --prefix pawl/{0}/",
                    cluster)};
  }
  store::PosixFiles files;
  SystemRandom random;
  const auto plan = plan_restore(files, random, options.restore);
  if (!plan) return plan.error();
  if (auto created = (*access)->create(first_write(*plan, random)); !created)
    return created.error();
  return plan->restored;
}

}  // namespace pawl::pawld
