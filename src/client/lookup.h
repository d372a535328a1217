// Looks up the endpoints of one address in the background: a resolver may hang, and a program that
// holds a lease cannot wait for it.
//
//   Lookup lookup;
//   lookup.start(address);
//   poll lookup.fd() for POLLIN; then
//   if (auto endpoints = lookup.take()) use(*endpoints);
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/address.h"
#include "client/socket.h"
#include "pawl/result.h"

namespace pawl::client {

class Lookup {
 public:
  [[nodiscard]] bool busy() const { return attempt_ != nullptr; }
  // Only when not busy. An address of digits is answered at once, without a thread.
  void start(const Address& address);
  // Readable when there is something to take; negative when not busy.
  [[nodiscard]] int fd() const;
  // Every endpoint of the address, or why there is none; nullopt while that is not known.
  [[nodiscard]] std::optional<Result<std::vector<Endpoint>>> take();
  // Its thread, if there is one, ends by itself.
  void give_up() { attempt_.reset(); }

 private:
  struct Attempt;
  std::shared_ptr<Attempt> attempt_;  // Shared with its thread, which is never waited for.
};

}  // namespace pawl::client
