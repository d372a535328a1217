// For tests: what each kind of user may do, as data. One row per thing that can be asked, be it a
// verb or a route; the test of each says how to ask, and every row is tried as every caller.
//
//   expect_permissions(kRows,
//                      [&](Caller caller, std::string_view request) -> PermissionAnswer { … });
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "wire/access.h"

namespace pawl::server {

// The user that asks. kLimited is an admin who may touch only what kMine covers.
enum class Caller : std::uint8_t { kNobody, kObserve, kUse, kAdmin, kLimited, kBackup };
inline constexpr std::string_view kMine = "mine";

// kServed: whatever the answer, it was no question of permission.
enum class Permission : std::uint8_t { kServed, kAuthenticateFirst, kNotPermitted };
struct PermissionAnswer {
  Permission permission = Permission::kServed;
  std::string text;  // of a refusal
};

// What a user who is limited to prefixes gets when it asks about something else.
enum class Elsewhere : std::uint8_t {
  kServed,      // it concerns no lock, or a lease, which is a secret of its own
  kOutside,     // refused; the text speaks of prefixes
  kWholeStore,  // refused whatever it names
};

struct PermissionRow {
  std::string_view name;
  wire::Access needs;
  std::string_view here;  // about a lock below kMine, where it names one
  Elsewhere elsewhere = Elsewhere::kServed;
  std::string_view there = {};  // the same about another lock; for kOutside
};

inline void expect_refused(const PermissionAnswer& answer, std::string_view naming,
                           std::string_view what) {
  EXPECT_EQ(answer.permission, Permission::kNotPermitted) << what;
  EXPECT_NE(answer.text.find(naming), std::string::npos)
      << what << " was answered: " << answer.text;
}

template <class Ask>
void expect_as_role(const PermissionRow& row, Caller caller, wire::Access role, Ask& ask) {
  const PermissionAnswer answer = ask(caller, row.here);
  if (wire::permits(role, row.needs)) {
    EXPECT_EQ(answer.permission, Permission::kServed)
        << row.here << " was answered: " << answer.text;
  } else {
    expect_refused(answer, "role " + std::string(to_text(row.needs)), row.here);
  }
}

template <class Ask>
void expect_permissions(std::span<const PermissionRow> rows, Ask ask) {
  for (const PermissionRow& row : rows) {
    SCOPED_TRACE(row.name);
    const bool open = row.needs == wire::Access::kNone;
    EXPECT_EQ(ask(Caller::kNobody, row.here).permission,
              open ? Permission::kServed : Permission::kAuthenticateFirst);
    expect_as_role(row, Caller::kObserve, wire::Access::kObserve, ask);
    expect_as_role(row, Caller::kUse, wire::Access::kUse, ask);
    expect_as_role(row, Caller::kAdmin, wire::Access::kAdmin, ask);
    expect_as_role(row, Caller::kBackup, wire::Access::kBackup, ask);
    const PermissionAnswer here = ask(Caller::kLimited, row.here);
    if (row.elsewhere == Elsewhere::kWholeStore) {
      expect_refused(here, "limited to the prefixes", row.here);
    } else {
      EXPECT_EQ(here.permission, Permission::kServed) << row.here << " was answered: " << here.text;
    }
    if (row.elsewhere == Elsewhere::kOutside) {
      expect_refused(ask(Caller::kLimited, row.there), "outside the prefixes", row.there);
    }
  }
}

}  // namespace pawl::server
