// The commands that work on a store or a backup without serving.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/random.h"
#include "core/records.h"
#include "pawld/commands.h"
#include "pawld/exit_codes.h"
#include "pawld/open_store.h"
#include "pawld/restore_backup.h"
#include "server/core_loader.h"
#include "store/journal/dump.h"
#include "store/journal/format.h"
#include "store/journal/verify.h"
#include "store/posix_files.h"

namespace pawl::pawld {
namespace {

void print_json(const boost::json::object& object) {
  fmt::print("{}\n", boost::json::serialize(object));
}

// --- verify --------------------------------------------------------------------------------------

struct Findings {
  store::journal::Verified store;
  std::uint64_t records = 0;
  core::Totals totals;
  Millis restoring{0};
};

// Reads everything into a core, which knows what the records mean and whether they contradict each
// other.
Result<Findings> examine(const std::string& directory) {
  store::PosixFiles files;
  core::Core core;
  server::CoreLoader loader(core);
  const auto verified = store::journal::verify(files, directory, loader);
  if (!verified) return verified.error();
  if (const auto loaded = core.loaded(Token{verified->high_water}, Now{}); !loaded)
    return Error{loaded.error().code, directory + ": " + loaded.error().detail};
  return Findings{*verified, loader.records(), core.totals(), core.restoring_for(Now{})};
}

boost::json::object to_json(const std::string& directory, const Findings& found) {
  return {{"directory", directory},
          {"kind", found.store.backup ? "backup" : "store"},
          {"whole", true},
          {"format", store::journal::kFormatVersion},
          {"incarnation", to_hex(found.store.incarnation)},
          {"era", found.store.high_water / limits::kTokensPerEra},
          {"last_token", found.store.high_water},
          {"last_token_exact", found.store.exact},
          {"records", found.records},
          {"leases", found.totals.leases},
          {"sequence", found.store.sequence},
          {"restoring_ms", found.restoring.count()},
          {"files", found.store.files},
          {"bytes", found.store.bytes}};
}

std::string to_text(const std::string& directory, const Findings& found) {
  std::string out =
      fmt::format("{}: a {}, whole\n", directory, found.store.backup ? "backup" : "store");
  const auto line = [&out](std::string_view key, const std::string& value) {
    out += fmt::format("  {:<14} {}\n", fmt::format("{}:", key), value);
  };
  line("incarnation", to_hex(found.store.incarnation));
  line("era", fmt::format("{}", found.store.high_water / limits::kTokensPerEra));
  line("last token",
       fmt::format("{}{}", found.store.exact ? "" : "at most ", found.store.high_water));
  line("records", fmt::format("{}", found.records));
  line("leases", fmt::format("{}", found.totals.leases));
  line("last batch", fmt::format("{}", found.store.sequence));
  line("files", fmt::format("{}, {} bytes, format {}", found.store.files, found.store.bytes,
                            store::journal::kFormatVersion));
  if (found.restoring > Millis(0))
    line("restored", fmt::format("grants begin {} ms after a start", found.restoring.count()));
  return out;
}

std::string verify_advice(const Error& error) {
  if (error.code == Code::kBusy) return "stop that pawld first, or verify a backup of it";
  if (error.code == Code::kDenied) return "pass a store or a backup with --data";
  return "nothing was changed; look at it with: pawld dump --data DIR";
}

// --- restore -------------------------------------------------------------------------------------

std::string restored_place(const Options& options) {
  return options.config.store == StoreKind::kEtcd
             ? fmt::format("cluster {} in etcd", options.config.etcd.cluster)
             : options.config.data;
}

void report_restored(const Options& options, const Restored& done) {
  const std::uint64_t era = done.last_token.value / limits::kTokensPerEra;
  if (options.json) {
    const bool etcd = options.config.store == StoreKind::kEtcd;
    return print_json(
        {{etcd ? "cluster" : "directory", etcd ? options.config.etcd.cluster : options.config.data},
         {"incarnation", to_hex(done.incarnation)},
         {"era", era},
         {"last_token", done.last_token.value},
         {"void_leases", done.void_leases},
         {"wait_ms", done.wait.count()}});
  }
  fmt::print(
      "restored {} from {}: era {}, the next token is greater than {}; {} of the backup {} void\n",
      restored_place(options), options.restore.from, era, done.last_token.value,
      done.void_leases == 1 ? "1 lease" : fmt::format("{} leases", done.void_leases),
      done.void_leases == 1 ? "is" : "are");
  if (done.wait > Millis(0)) {
    fmt::print(
        "No lock is granted for the first {} s after pawld starts, so that leases granted after "
        "the backup can expire.\n",
        std::chrono::ceil<std::chrono::seconds>(done.wait).count());
  }
}

}  // namespace

int init(const Options& options) {
  const std::string& data = options.config.data;
  std::error_code unreadable;
  const bool in_use =
      std::filesystem::exists(data, unreadable) && !std::filesystem::is_empty(data, unreadable);
  if (in_use && !unreadable) {
    fmt::print("{} is not empty; it stays as it is\n", data);
    return kExitOk;
  }
  SystemRandom random;
  OpenStore opened;
  Config config = options.config;
  config.store = StoreKind::kJournal;
  config.journal.must_exist = false;
  NoLog log;
  Result<void> done = opened.open(config, random, log);
  if (done) {
    struct : store::Visitor {
      Result<void> record(std::string_view /*key*/, std::string_view /*value*/) override {
        return {};
      }
    } nothing;
    const auto loaded = opened.store().load(nothing);
    done = loaded ? opened.close() : Result<void>(loaded.error());
  }
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", with_advice(done.error(), config));
    return exit_code_of(done.error());
  }
  fmt::print("created an empty store in {}\n", data);
  return kExitOk;
}

int dump(const Options& options) {
  if (options.config.store == StoreKind::kEtcd) return dump_etcd(options);
  store::PosixFiles files;
  const auto format = [](bool put, std::string_view key, std::string_view value) {
    if (put) return core::describe(key, value);
    if (!core::is_lease_key(key)) return std::string("a record this version does not know");
    return fmt::format("lease token {}", ByteReader(key.substr(1)).u64_ordered());
  };
  const auto dumped = store::journal::dump(files, options.config.data, format,
                                           [](std::string_view line) { fmt::print("{}\n", line); });
  if (dumped) return kExitOk;
  fmt::print(stderr, "pawld: {}. Pass the directory with --data\n", dumped.error().detail);
  return kExitConfig;
}

int verify(const Options& options) {
  const std::string& directory = options.config.data;
  const auto found = examine(directory);
  if (!found) {
    const Error& error = found.error();
    if (options.json) {
      print_json({{"directory", directory}, {"whole", false}, {"error", error.detail}});
    } else {
      fmt::print(stderr, "pawld: {}; {}\n", error.detail, verify_advice(error));
    }
    return exit_code_of(error);
  }
  if (options.json) {
    print_json(to_json(directory, *found));
  } else {
    fmt::print("{}", to_text(directory, *found));
  }
  return kExitOk;
}

void report_backup(const Options& options, const store::BackupDone& done) {
  if (options.json) {
    return print_json({{"dir", options.backup_to},
                       {"files", done.files},
                       {"bytes", done.bytes},
                       {"records", done.records},
                       {"last_token", done.last_number},
                       {"sequence", done.sequence}});
  }
  fmt::print("{}: {} records in {} files, {} bytes, read back; last token {}\n", options.backup_to,
             done.records, done.files, done.bytes, done.last_number);
}

int restore(const Options& options) {
  store::PosixFiles files;
  SystemRandom random;
  const auto done = options.config.store == StoreKind::kEtcd
                        ? restore_into_etcd(options)
                        : restore_backup(files, random, options.restore, options.config.data);
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", done.error().detail);
    return exit_code_of(done.error());
  }
  report_restored(options, *done);
  if (options.restore.skip_wait) {
    fmt::print(stderr,
               "pawld: warning: --skip-wait: a lease that was granted after the backup may still "
               "be in use when its lock is granted again; only resources with a guard are safe\n");
  }
  return kExitOk;
}

}  // namespace pawl::pawld
