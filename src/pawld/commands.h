// The commands of pawld: serving (daemon.cc) and those that do not serve (offline.cc,
// check_config.cc). Each returns the exit code; those that do not serve print their result.
#pragma once

#include "pawld/options.h"
#include "pawld/restore_backup.h"
#include "store/store.h"

namespace pawl::pawld {

// `pawld`: opens the store, connects engine, loop and HTTP, and serves until SIGTERM or SIGINT;
// SIGHUP reloads users and certificate. The caller has blocked these signals before any thread
// exists.
int serve(const Options& options);

// `pawld init`: creates an empty store in options.config.data. An existing store is not changed.
int init(const Options& options);

// `pawld dump`: prints the store in options.config.data for people.
int dump(const Options& options);

// The same for a store in etcd (dump_etcd.cc).
int dump_etcd(const Options& options);

// `pawld backup`: copies the store of a cluster out of etcd into the new directory
// options.backup_to (backup_etcd.cc). A journal is backed up by the pawld that serves it.
int backup_etcd(const Options& options);
// What it prints.
void report_backup(const Options& options, const store::BackupDone& done);

// `pawld verify`: reads all of options.config.data, a store or a backup, and prints what is in it
// or what is wrong with it. 0 if it is complete.
int verify(const Options& options);

// `pawld restore`: creates a store in options.config.data from the backup options.restore.from
// (design rule 9); or in etcd, if that is the store.
int restore(const Options& options);
[[nodiscard]] Result<Restored> restore_into_etcd(const Options& options);

// `pawld --check-config`: parse_options() has accepted the configuration; prints that, and the user
// as which its files were read. As root it also reads them as the owner of the data.
int check_config(const Options& options);

}  // namespace pawl::pawld
