// Command dispatch: finds the verb of a command, refuses what its connection may not use now, and
// has the verb serve it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "server/verbs/verb.h"

namespace pawl::server {

class Commands {
 public:
  explicit Commands(Services& services) : services_(services) {}

  // Whether the command of this name is served even by a turn that has spent its budget: leases end
  // when it comes too late (G10).
  [[nodiscard]] static bool is_served_first(std::string_view name);
  // Whether the command of this name may add to the batch.
  [[nodiscard]] static bool is_stored(std::string_view name);

  // Serves one command; `args` begins with its name. It has exactly one reply: now, or when its
  // wait ends.
  void serve(Session& session, std::span<const std::string_view> args, Now now);

 private:
  Served serve_verb(Command& command, const Verb& verb, std::span<const std::string_view> args);
  // What refuses a verb before its arguments are looked at.
  [[nodiscard]] Refusal check_early(Session& session, const Verb& verb) const;

  Services& services_;
};

}  // namespace pawl::server
