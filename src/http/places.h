// The places of a server's connections: how many there may be of which kind, and which one has to
// go when there are too many. Knows no socket and no clock.
//
//   if (const auto gone = places.add(id, now)) …close `gone`…
//   places.set_silent(id, false, now);              // its request is here
//   const auto admitted = places.admit(id);         // the request is one of a valid user
//   if (admitted.displaced) …close that one…
//
// A connection begins as a newcomer. The handler admits it when a request has shown who sends it.
// Newcomers have a number of their own, and a sum of memory for what they have sent; where either is
// reached a silent one makes room, so strangers never keep clients out. Where the ordinary places are
// taken, the client that has been silent longest makes room; where none is silent, there are some
// more places for renewals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/newcomers.h"
#include "base/types.h"
#include "http/exchange.h"

namespace pawl::http {

class Places {
 public:
  using Id = Newcomers::Id;
  struct Bounds {
    std::size_t newcomers;
    std::size_t newcomer_bytes;
    std::size_t ordinary;
    std::size_t reserved;
    Random* random = nullptr;  // as in Newcomers, for newcomers
  };
  explicit Places(Bounds bounds)
      : bounds_(bounds),
        newcomers_({.most = bounds.newcomers, .patience = Nanos(0), .random = bounds.random}) {}

  // A new connection, which is silent. Returns the one to close in its stead, which is forgotten
  // here, if there are too many.
  [[nodiscard]] std::optional<Id> add(Id id, Nanos now);
  // Whether it waits for its client.
  void set_silent(Id id, bool silent, Nanos now);
  // How much memory its unanswered request takes now. Returns those to close, because newcomers take
  // too much together; they are forgotten here. It may be one of them.
  [[nodiscard]] std::vector<Id> set_bytes(Id id, std::size_t bytes);

  struct Admitted {
    Admission admission = Admission::kNone;
    std::optional<Id> displaced = {};  // The one to close; it is forgotten here.
  };
  // What may be served on it, now that its client is known. May be asked again: the answer changes
  // when there is room. kNone: there is no place, and it stays a newcomer.
  [[nodiscard]] Admitted admit(Id id);
  // Nothing happens if it was forgotten.
  void remove(Id id);

  [[nodiscard]] std::size_t size() const { return newcomers_.size() + admitted_.size(); }

 private:
  void forget_bytes(Id id);

  const Bounds bounds_;
  Newcomers newcomers_;
  std::unordered_map<Id, std::size_t> newcomer_bytes_;          // those that have sent something
  std::size_t bytes_ = 0;                                       // the sum of these
  std::unordered_map<Id, Admission> admitted_;                  // kAll or kRenewals
  std::size_t ordinary_ = 0, reserved_ = 0;                     // of these
  Newcomers silent_{{.most = SIZE_MAX, .patience = Nanos(0)}};  // and those that are silent
};

}  // namespace pawl::http
