// What a drill writes to, and how a worker reaches it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "conformance/sql_place.h"
#include "conformance/subject.h"
#include "pawl/result.h"

namespace pawl::drill {

// How a scratch resource is guarded: a table with a trigger, as most users have it.
inline constexpr conformance::Form kScratchForm = conformance::Form::kTable;

// What a worker must know to write; it goes to it over a pipe.
struct Target {
  std::string kind;      // postgres, sqlite, mariadb
  std::string where;     // a DSN, or a file
  std::string resource;  //
  bool scratch =
      true;  // made by a conformance::Subject of the drill, in kScratchForm; else the user's own
  bool guarded = true;  // false: nobody judges; scratch only
  bool watched =
      true;  // tables with triggers, else a guard that is only asked; the user's own only
  // What a write does. Empty: it is a line in the log of what is scratch; of the user's own it is
  // judged, and taken back. For a table of ours that is scratch, `:value` and `:token` stand for
  // those of the write.
  std::string statement = {};
};

// One writer's connection to the target. Used by one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  // A whole write under this token, in a transaction of its own. What is answered is the guard's
  // verdict; passed() means that it is in effect (or, where it was only judged, that it would be).
  virtual conformance::Outcome write(std::uint64_t token, const std::string& value) = 0;
  // What a new holder does before it reads what it will build on. kDone when nobody guards.
  virtual conformance::Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) = 0;
};

[[nodiscard]] Result<std::unique_ptr<Writer>> open_writer(const Target& target);

}  // namespace pawl::drill
