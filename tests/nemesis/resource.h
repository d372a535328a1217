// A guarded resource as the worker uses it, whichever kind of guard it has. Each resource is a
// table of its own (or a list, or keys) into which the holder inserts a row per write: in the order
// of the rows, which is the order of commits, tokens must never go back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "guard/kinds.h"
#include "pawl/guard.h"
#include "pawl/lease.h"

namespace pawl::nemesis {

enum class Outcome : std::uint8_t {
  kAdmitted,
  kReplayed,
  kStale,
  kNothing,  // It failed, and surely nothing happened.
  kUnknown,  // It may have happened.
};
[[nodiscard]] const char* to_text(Outcome outcome);

struct Answer {
  Outcome outcome = Outcome::kNothing;
  std::string detail;
};

// One row: (token, op) is written once. The moment is taken inside the transaction, when the token
// has been admitted.
struct Row {
  std::string resource;
  std::uint64_t token = 0;
  std::uint64_t op = 0;
  std::string writer;
};

// Writes through the sessions of one kind of guard (guard/kinds.h). A connection that is lost is
// opened again with the next call.
class Resource {
 public:
  using Clock = std::function<std::int64_t()>;

  // "KIND:WHERE", such as "sqlite:FILE" and "postgres:DSN".
  Resource(const std::string& kind_and_where, Clock now);
  ~Resource();

  // For AcquireOptions::guards; nullptr where libpawl has no front.
  [[nodiscard]] Guard* guard();
  [[nodiscard]] Answer advance(const std::string& resource, std::uint64_t token);
  [[nodiscard]] Answer check(const std::string& resource, std::uint64_t token);
  // With a lease by libpawl's front, else step by step, as any client that knows only the token.
  [[nodiscard]] Answer write(const Row& row, const Lease* lease);

 private:
  class ReconnectingGuard;

  // nullptr: the server cannot be reached.
  guard::Session* session();
  [[nodiscard]] Answer unreachable() const;
  Answer write_in_steps(guard::Session& session, const Row& row);

  const guard::Kind& kind_;
  const std::string where_;
  const Clock now_;
  std::unique_ptr<guard::Session> session_;
  std::unique_ptr<ReconnectingGuard> guard_;
};

}  // namespace pawl::nemesis
