// pawld restore: the command, and what it says.
#include <fmt/format.h>

#include <chrono>

#include "base/hex.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "base/random.h"
#include "pawld/exit_codes.h"
#include "pawld/offline.h"
#include "pawld/restoring.h"
#include "store/posix_files.h"

namespace pawl::pawld {
namespace {

void report(const Options& options, const Restored& done) {
  const std::uint64_t era = done.last_token.value / limits::kTokensPerEra;
  if (options.json) {
    std::string directory;
    append_json_text(directory, options.config.data);
    fmt::print(
        R"({{"directory":"{}","incarnation":"{}","era":{},"last_token":{},"void_leases":{},"wait_ms":{}}})"
        "\n",
        directory, to_hex(done.incarnation), era, done.last_token.value, done.void_leases,
        done.wait.count());
    return;
  }
  fmt::print(
      "restored {} from {}: era {}, the next token is greater than {}; {} leases of the backup are "
      "void\n",
      options.config.data, options.restore.from, era, done.last_token.value, done.void_leases);
  if (done.wait > Millis(0)) {
    fmt::print(
        "No lock is granted for the first {} s after pawld starts, so that leases granted after "
        "the backup "
        "can "
        "expire.\n",
        std::chrono::ceil<std::chrono::seconds>(done.wait).count());
  }
}

}  // namespace

int restore(const Options& options) {
  store::PosixFiles files;
  SystemRandom random;
  const auto done = make_from_backup(files, random, options.restore, options.config.data);
  if (!done) {
    fmt::print(stderr, "pawld: {}\n", done.error().detail);
    return exit_code_of(done.error());
  }
  report(options, *done);
  if (options.restore.skip_wait) {
    fmt::print(stderr,
               "pawld: warning: --skip-wait: a lease that was granted after the backup may still "
               "be in use when its "
               "lock is granted again; only resources with a guard are safe\n");
  }
  return kExitOk;
}

}  // namespace pawl::pawld
