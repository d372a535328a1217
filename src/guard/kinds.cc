#include "guard/kinds.h"

#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/assert.h"
#include "guard/dynamodb/kind.h"
#include "guard/etcd/kind.h"
#include "guard/mariadb/kind.h"
#include "guard/postgres/kind.h"
#include "guard/redis/kind.h"
#include "guard/s3/kind.h"
#include "guard/sqlite/kind.h"
#include "guard_contract/resource_name.h"
#ifdef PAWL_TEST_KINDS
#include "toy/kind.h"
#endif

namespace pawl::guard {
namespace {

const std::array kKinds{
    &kPostgresKind, &kSqliteKind, &kMariaKind, &kRedisKind, &kEtcdKind, &kS3Kind, &kDynamoKind,
#ifdef PAWL_TEST_KINDS  // Only in a pawl that tests link: tests/guard/toy.
    &kToyKind,
#endif
};

}  // namespace

std::span<const Kind* const> all_kinds() {
  return kKinds;
}

const Kind* find_kind(std::string_view name) {
  for (const Kind* kind : kKinds) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

Result<const Kind*> need_kind(std::string_view name) {
  if (const Kind* kind = find_kind(name)) return kind;
  return Error{Code::kInvalid,
               "unknown kind of guard \"" + std::string(name) + "\": expected " + kind_names()};
}

const Kind& serverless_kind() {
  for (const Kind* kind : kKinds) {
    if (kind->create != nullptr) return *kind;
  }
  PAWL_ASSERT(false && "no kind works without a server");
  return *kKinds.front();
}

std::string kind_names() {
  std::string names;
  for (const Kind* kind : kKinds) {
    if (kind != kKinds.front()) names += kind == kKinds.back() ? " or " : ", ";
    names += kind->name;
  }
  return names;
}

Result<GuardedName> parse_guarded(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto kind = need_kind(text.substr(0, colon));
  if (!kind) return kind.error();
  if (colon == text.npos) return GuardedName{*kind, {}};
  const std::string_view resource = text.substr(colon + 1);
  if (const auto name = parse_resource(resource); !name) return name.error();
  return GuardedName{*kind, std::string(resource)};
}

Result<std::vector<std::string>> assign_dsns(const std::vector<std::string>& guards,
                                             const std::vector<std::string>& dsns) {
  const auto invalid = [](std::string detail) { return Error{Code::kInvalid, std::move(detail)}; };
  std::map<std::string, std::string, std::less<>> by_kind;
  std::vector<std::string> plain;
  for (const std::string& text : dsns) {
    const std::size_t equals = text.find('=');
    const std::string kind = text.substr(0, equals);
    if (equals == text.npos || find_kind(kind) == nullptr) {
      plain.push_back(text);
    } else if (!by_kind.emplace(kind, text.substr(equals + 1)).second) {
      return invalid(kind +
                     "=… was given twice; for several guards of one kind give a DSN without a kind "
                     "for each guard, in their order");
    }
  }
  std::vector<std::string> places;
  std::set<std::string, std::less<>> unused;
  for (const auto& [kind, dsn] : by_kind) unused.insert(kind);
  std::size_t others = 0;
  for (const std::string& guard : guards) {
    const std::string kind = guard.substr(0, guard.find(':'));
    if (const auto found = by_kind.find(kind); found != by_kind.end()) {
      places.push_back(found->second);
      unused.erase(kind);
      continue;
    }
    if (plain.size() <= 1) places.push_back(plain.empty() ? "" : plain.front());
    if (plain.size() > 1) places.push_back(others < plain.size() ? plain[others] : "");
    ++others;
  }
  if (!unused.empty()) return invalid(*unused.begin() + "=… was given, but no guard of that kind");
  if (plain.size() > 1 && plain.size() != others)
    return invalid(std::to_string(plain.size()) + " were given for " + std::to_string(others) +
                   " guards; give one for all, one for each guard in their order, or KIND=DSN for "
                   "each kind");
  PAWL_ASSERT(places.size() == guards.size());
  return places;
}

}  // namespace pawl::guard
