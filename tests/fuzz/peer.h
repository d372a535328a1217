// The far end of one connection: what it sent, and what it makes of what comes back. Everything it
// receives is compared with the protocol's promises:
//
//   - every byte decodes with our own decoder, and each command has exactly one reply, in order;
//   - a wait that was answered "queued" ends with exactly one push;
//   - events carry ids that only grow.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "wire/events.h"
#include "wire/replies.h"
#include "wire/reply_decoder.h"

namespace pawl::fuzz {

// A command as it was sent, for judging its reply.
struct Sent {
  std::string verb;
  std::string request;  // of ACQUIRE; empty = none
  std::string text;     // of ECHO
};

class Peer {
 public:
  using Grants = std::vector<wire::GrantReply>;

  // --- What this end does ------------------------------------------------------------------------
  // All bytes of this command are on their way.
  void sent(Sent command) { expected_.push_back(std::move(command)); }
  // It sent what may be anything, so its replies cannot be counted any more.
  void sent_garbage() { garbage_ = true; }

  // --- What it receives --------------------------------------------------------------------------
  // Returns the grants that these bytes complete.
  Grants received(std::string_view bytes);

  // Every command has its reply, and every wait its end.
  [[nodiscard]] bool satisfied() const {
    return garbage_ || quit_ || (expected_.empty() && waits_.empty());
  }
  // Why pawld may close the connection without this end hanging up.
  [[nodiscard]] bool may_be_closed() const { return garbage_ || quit_; }
  // As satisfied(), for one that hung up: its waits ended without a word.
  [[nodiscard]] bool answered() const { return garbage_ || quit_ || expected_.empty(); }
  [[nodiscard]] std::optional<wire::EventId> last_event() const { return last_event_; }

 private:
  void take(const wire::Value& value, Grants& grants);
  void take_event(const wire::EventPush& event);
  void take_push(const wire::WaitPush& push, Grants& grants);
  void take_reply(const wire::Value& value, Grants& grants);

  wire::ReplyDecoder decoder_;
  std::string unread_;
  std::deque<Sent> expected_;
  std::set<std::string> waits_;  // requests answered "queued" here, and not ended
  std::optional<wire::EventId> last_event_;
  bool garbage_ = false;
  bool quit_ = false;
};

}  // namespace pawl::fuzz
