// A guarded resource as the worker uses it, whichever database it is in. Each resource is a table
// of its own into which the holder inserts a row per write: in the order of the rows, which is the
// order of commits, tokens must never go back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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

class Resource {
 public:
  using Clock = std::function<std::int64_t()>;
  virtual ~Resource() = default;

  // For AcquireOptions::guards; nullptr where there is no front in C++, and connections that are
  // lost are made again.
  [[nodiscard]] virtual Guard* guard() = 0;
  [[nodiscard]] virtual Answer advance(const std::string& resource, std::uint64_t token) = 0;
  [[nodiscard]] virtual Answer check(const std::string& resource, std::uint64_t token) = 0;
  // With a lease by the front that takes one, else as any client would that knows only the token.
  [[nodiscard]] virtual Answer write(const Row& row, const Lease* lease) = 0;
};

// "sqlite:FILE", "postgres:DSN", "mariadb:DSN".
[[nodiscard]] std::unique_ptr<Resource> open_resource(const std::string& where,
                                                      Resource::Clock now);
[[nodiscard]] std::unique_ptr<Resource> open_sqlite(const std::string& file, Resource::Clock now);
[[nodiscard]] std::unique_ptr<Resource> open_postgres(const std::string& dsn, Resource::Clock now);
[[nodiscard]] std::unique_ptr<Resource> open_mariadb(const std::string& dsn, Resource::Clock now);

[[nodiscard]] Answer answer_of(const Result<Decision>& decision);
[[nodiscard]] Answer answer_of(const Error& error);

}  // namespace pawl::nemesis
