// Detects that this process is a fork() of the one that created the object: threads, sockets and
// leases stay with the parent.
#pragma once

#include <cstdint>

namespace pawl::client {

class ForkGuard {
 public:
  ForkGuard();
  // Takes no lock: in a child any lock may be held for ever.
  [[nodiscard]] bool forked() const;

 private:
  std::uint64_t generation_;
};

}  // namespace pawl::client
