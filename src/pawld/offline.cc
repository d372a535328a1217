#include "store/journal/verify.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "pawld/exit_codes.h"
#include "pawld/into_core.h"
#include "pawld/offline.h"
#include "store/journal/format.h"
#include "store/posix_files.h"

namespace pawl::pawld {
namespace {

struct Findings {
  store::journal::Verified store;
  std::uint64_t records = 0;
  core::Totals totals;
  Millis restoring{0};
};

Result<Findings> examine(const std::string& directory) {
  store::PosixFiles files;
  IntoCore visitor;
  const auto verified = store::journal::verify(files, directory, visitor);
  if (!verified) return verified.error();
  if (const auto fits = visitor.core.loaded(Token{verified->high_water}, Now{}); !fits)
    return Error{fits.error().code, directory + ": " + fits.error().detail};
  return Findings{*verified, visitor.records, visitor.core.totals(),
                  visitor.core.restoring_for(Now{})};
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  append_json_text(out, text);
  return out + "\"";
}

std::string in_json(const std::string& directory, const Findings& found) {
  return fmt::format(
      R"({{"directory":{},"kind":"{}","whole":true,"format":{},"incarnation":"{}","era":{},"last_token":{},)"
      R"("last_token_exact":{},"records":{},"leases":{},"sequence":{},"restoring_ms":{},"files":{},"bytes":{}}})",
      json_quoted(directory), found.store.backup ? "backup" : "store",
      store::journal::kFormatVersion, to_hex(found.store.incarnation),
      found.store.high_water / limits::kTokensPerEra, found.store.high_water, found.store.exact,
      found.records, found.totals.leases, found.store.sequence, found.restoring.count(),
      found.store.files, found.store.bytes);
}

std::string for_people(const std::string& directory, const Findings& found) {
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

std::string advice(const Error& error) {
  if (error.code == Code::kBusy) return "stop that pawld first, or verify a backup of it";
  if (error.code == Code::kDenied) return "name a store or a backup with --data";
  return "nothing was changed; look at it with: pawld dump --data DIR";
}

}  // namespace

int verify(const Options& options) {
  const std::string& directory = options.config.data;
  const auto found = examine(directory);
  if (!found) {
    if (options.json) {
      fmt::print("{{\"directory\":{},\"whole\":false,\"error\":{}}}\n", json_quoted(directory),
                 json_quoted(found.error().detail));
    } else {
      fmt::print(stderr, "pawld: {}; {}\n", found.error().detail, advice(found.error()));
    }
    return exit_code_of(found.error());
  }
  fmt::print("{}",
             options.json ? in_json(directory, *found) + "\n" : for_people(directory, *found));
  return kExitOk;
}

}  // namespace pawl::pawld
