// The kinds of guards there are. Everything that lets users choose one (`pawl guard`, `pawl run
// --guard`, `pawl drill`, `pawl demo`, the conformance kit, the nemesis) asks here, and no other
// source names them.
//
// A new kind is a folder src/guard/NAME with one `const Kind`, one line in kinds.cc, and its name
// in the list of folders in src/guard/CMakeLists.txt.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/kind.h"
#include "pawl/result.h"

namespace pawl::guard {

// In the order in which they are listed to users.
[[nodiscard]] std::span<const Kind* const> all_kinds();
// nullptr: there is none of that name.
[[nodiscard]] const Kind* find_kind(std::string_view name);
// The same for names that come from users; kInvalid lists the kinds there are.
[[nodiscard]] Result<const Kind*> need_kind(std::string_view name);
// The first that needs no server (Kind::create); there always is one.
[[nodiscard]] const Kind& serverless_kind();
// "postgres, sqlite, mariadb, redis, etcd, s3 or dynamodb".
[[nodiscard]] std::string kind_names();

// KIND:RESOURCE, as --guard takes it. The first ':' ends the kind; the resource is as in
// guard_contract/resource_name.h.
struct GuardedName {
  const Kind* kind = nullptr;
  std::string resource = {};  // empty: there was no ':'
};
[[nodiscard]] Result<GuardedName> parse_guarded(std::string_view text);

// The place of each guard (KIND:RESOURCE), in their order; empty: the default of its kind.
// `KIND=DSN` is for every guard of that kind. One DSN without a kind is for all other guards;
// several are for the other guards one by one, in order. kInvalid: the numbers do not fit.
[[nodiscard]] Result<std::vector<std::string>> assign_dsns(const std::vector<std::string>& guards,
                                                           const std::vector<std::string>& dsns);

}  // namespace pawl::guard
