// One kind of guard, as data: all that the rest of Pawl must know of it. The kinds there are:
// kinds.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "guard/administration.h"
#include "guard/scratch.h"
#include "guard/session.h"
#include "pawl/result.h"

namespace pawl::guard {

// How users say where it is.
enum class Location : std::uint8_t {
  kDsn,   // --dsn: a URI or key=value pairs; empty: the environment and files of its client library
  kFile,  // --file PATH (or --dsn PATH); never empty
};

// Which resources a session writes to.
struct SessionRequest {
  // A resource that a ScratchSpace made, perhaps in another process, and that space's form. Empty:
  // whatever the user has put under guard.
  std::string scratch_resource = {};
  std::string form = {};
  // Of the user's own: every write is judged (triggers); false: only a write that asks is.
  bool watched = true;
};

// The functions open what they return on a connection of its own. `where` is a DSN or a path, as
// `location` says.
struct Kind {
  std::string_view name;   // as users type it: postgres
  std::string_view title;  // for sentences: PostgreSQL
  Location location = Location::kDsn;
  std::string_view where_example;  // of a DSN or path, for hints

  Abilities abilities;  // of every form
  // The forms in which this kind can guard a resource; the conformance kit tests each of them.
  std::span<const std::string_view> forms;
  std::string_view scratch_form;  // the usual one of them, for drills and the demo

  Result<std::unique_ptr<Administration>> (*open_administration)(const std::string& where);
  Result<std::unique_ptr<Session>> (*open_session)(const std::string& where,
                                                   const SessionRequest& request);
  // The guard must be installed there.
  Result<std::unique_ptr<ScratchSpace>> (*open_scratch)(const std::string& where,
                                                        std::string_view form);

  // Makes a new file with the guard installed, fit for several writers at once. nullptr: this kind
  // needs a server.
  Result<void> (*create)(const std::string& path) = nullptr;
  // Whether a server seems to run on this machine; nothing is connected to. nullptr: never.
  bool (*seems_local)() = nullptr;
};

}  // namespace pawl::guard
