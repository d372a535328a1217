// What pawld itself says of its locks: an observer on a perfect connection, inside the simulated
// machine. Checks what no client can see.
//
//   G3  a lock is handed on only when it is free, and no lease runs out before its TTL has passed
//       since its grant was durable, on pawld's own clock; after a restart: since the start (G4)
//   G5  one request is granted once
//   G6  a waiter that has hung up is never granted (hard case 19)
//   EL  the numbers of events only grow, over restarts and restores
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "wire/events.h"
#include "wire/reply_decoder.h"

namespace pawl::sim {

class ServerWatch {
 public:
  ServerWatch(Millis ttl, std::vector<std::string>& faults) : ttl_(ttl), faults_(faults) {}

  // pawld begins to serve, at this moment of its own clock. Returns what the observer sends.
  [[nodiscard]] std::string start(Nanos now);
  // `held_since`: pawld has held its output since then, so what is granted here may be durable since
  // then as well.
  void received(std::string_view bytes, Nanos now, std::optional<Nanos> held_since = {});
  // Its OBSERVE is answered: from here on it is sent every event.
  [[nodiscard]] bool observing() const { return answers_ >= 2; }

  // The connection on which `owner` waited, as the last thing it did, is known to be gone; or it
  // asks again elsewhere.
  void hung_up(const std::string& owner) { gone_.insert(owner); }
  void came_back(const std::string& owner) { gone_.erase(owner); }

  // Where the disk was damaged: the last batch may be gone, and the numbers of its events are given
  // again.
  void last_batch_may_be_gone() { newest_ = 0; }

  // Every event that was sent, in order, in all lives.
  struct Sent {
    wire::EventId id;
    wire::EventKind kind;
    std::string lock;
    Token token;
    std::uint64_t life;
  };
  [[nodiscard]] const std::vector<Sent>& sent() const { return sent_; }
  [[nodiscard]] std::uint64_t life() const { return life_; }

 private:
  void see(const wire::EventPush& event, Nanos now, Nanos durable);
  void granted(const wire::EventPush& event, Nanos durable);
  void ended(const wire::EventPush& event, Nanos now);

  const Millis ttl_;
  std::vector<std::string>& faults_;
  std::optional<wire::ReplyDecoder> decoder_;
  std::string unread_;
  int answers_ = 0;  // To HELLO and OBSERVE.
  Nanos started_{0};
  std::map<Token, Nanos> durable_;  // When each grant of this life was sent.
  std::map<std::string, std::set<Token>>
      exclusive_;               // Live exclusive leases of this life, by lock.
  std::set<std::string> gone_;  // Owners whose waits ended with their connection.
  std::vector<Sent> sent_;
  std::uint64_t life_ = 0;
  std::uint64_t newest_ = 0;             // The number of the last event that was sent.
  std::map<std::string, Token> owners_;  // Granted in this life; an owner names one attempt.
};

}  // namespace pawl::sim
