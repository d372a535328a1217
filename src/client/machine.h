// The client without I/O: calls, bytes and time in; bytes, completions and a timer out. A driver
// owns the socket and the clock (blocking_connection.h); the simulator is another driver. No
// thread, no clock, no lock.
//
//   Machine machine(random);
//   CallId call = machine.acquire({.locks = {"reports/nightly"}}, now);
//   if (machine.wants_connection(now)) …connect…, then machine.connected(now) or machine.disconnected(why,
//   now); send(machine.take_output());   machine.received(bytes, now);   at machine.next_timer():
//   machine.timer(now); for (Completion& done : machine.take_completions()) …
//
// Read the socket first, then the clock, and pass that `now`: an answer must never look younger
// than it is. `now` is also what counts as the moment of sending, so take and send the output at
// once.
//
// Any number of calls share one connection; replies are matched in order, the end of a wait by its
// request id. When the connection is lost, what can be sent again is sent again, an acquire with
// the same request id (G5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "client/agenda.h"
#include "client/calls.h"
#include "client/flow.h"
#include "client/observers.h"
#include "client/time.h"
#include "pawl/types.h"
#include "wire/reply_decoder.h"

namespace pawl::client {

// In an error, between the address of a port that speaks TLS and the address to use instead.
inline constexpr std::string_view kSpeaksTls = " speaks TLS: write ";

struct MachineOptions {
  std::string name = "pawl";     // shown by CLIENT LIST
  Auth auth = {};                // sent with the greeting of each connection
  Millis answer_timeout{5'000};  // A connection that owes an answer for so long is given up.
  Millis backoff_min{50};        // Between attempts to connect; doubles, with jitter,
  Millis backoff_max{2'000};     // up to this.
  Millis probe_after{
      // A connection on which calls only wait is asked, after so much silence, if it lives.
      30'000};
};

class Machine {
 public:
  explicit Machine(Random& random, MachineOptions options = {});
  ~Machine();

  // --- Calls. Each completes exactly once, never inside the call itself --------------------------
  CallId acquire(AcquireCall call, Instant now);
  CallId renew(const RenewCall& call, Instant now);
  CallId renew_many(RenewManyCall call, Instant now);
  CallId release(const ReleaseCall& call, Instant now);
  CallId command(CommandCall call, Instant now);
  CallId observe(ObserveCall call, Instant now);
  // The caller does not want the answer any more: the call completes at once. Whatever an acquire
  // may have got is given back in the background. Nothing happens when it is complete already: then
  // the lease is the caller's to release.
  void cancel(CallId call, Instant now);
  // What is at stake cannot wait longer than this for an answer: a connection that owes one for so
  // long is given up, and attempts to connect are no further apart. Only ever shortens what the
  // options say; kPatient: as they say.
  static constexpr Millis kPatient = Millis::max();
  void set_patience(Millis patience) { patience_ = patience; }

  // --- What the driver reports -------------------------------------------------------------------
  // `peer` is the address as people write it, for messages.
  void connected(Instant now, std::string peer = {});
  // The connection is gone, or the attempt failed. `why` is for people.
  void disconnected(std::string_view why, Instant now);
  // Every address was tried in vain. Calls that cannot have happened end with kUnavailable; the
  // others go on trying until their own limit. A driver that prefers patience does not say this.
  void unreachable();
  void received(std::string_view bytes, Instant now);
  void timer(Instant now);

  // --- What the driver does ----------------------------------------------------------------------
  [[nodiscard]] bool wants_connection(Instant now) const;
  // The connection is of no use (protocol error, wrong server, silence, a standby): close it, then
  // disconnected().
  [[nodiscard]] bool wants_close() const { return link_ == Link::kBroken; }
  // Why it is of no use, or what the last disconnected() said; for people.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] std::string take_output();
  [[nodiscard]] std::vector<Completion> take_completions();
  // What observations have told. One that was cancelled tells nothing any more.
  [[nodiscard]] std::vector<Sighting> take_sightings() { return observers_.take(); }
  [[nodiscard]] bool has_completions() const { return !completions_.empty(); }
  // When timer() is next due, wants_connection() included; kNever when nothing is.
  [[nodiscard]] Instant next_timer() const;

  // Whether a pawld has ever answered the greeting.
  [[nodiscard]] bool greeted() const { return greeted_; }
  // Nothing is left to do, not even in the background.
  [[nodiscard]] bool idle() const { return flows_.empty(); }
  // The place of a waiting acquire in its queue, as last heard.
  [[nodiscard]] std::optional<std::uint64_t> position(CallId call) const;

 private:
  enum class Link : std::uint8_t { kDown, kGreeting, kReady, kBroken };
  struct Sent {
    CallId call;  // or the greeting, or a probe
    Instant at;
  };

  CallId start(std::unique_ptr<Flow> flow);
  void start(CallId id, std::unique_ptr<Flow> flow);
  CallId next_call() { return CallId{++last_call_}; }
  void pump(Instant now);
  void settle(CallId call, Flow& flow);
  void take_value(const wire::Value& value, Instant now);
  void take_push(const wire::Value& push, Instant now);
  void take_greeting(const wire::Value& value);
  void turn_away(const Error& error);
  void break_link(std::string why);
  template <class Visit>
  void for_each_flow(Visit visit);
  void wake(Flow& flow, Instant now);
  [[nodiscard]] Millis answer_timeout() const;
  [[nodiscard]] bool silent(Instant now) const;
  [[nodiscard]] Instant probe_at() const;
  void probe(Instant now);

  Random& random_;
  const MachineOptions options_;
  Millis patience_ = kPatient;

  std::uint64_t last_call_ = 0;
  Observers observers_;                            // outlives the flows, which leave it
  std::map<CallId, std::unique_ptr<Flow>> flows_;  // in order of call
  std::set<CallId> ready_;                         // those with something to send
  Agenda<CallId> agenda_;                          // when each wants to be woken, or gives up
  std::unordered_map<std::string_view, CallId> acquires_;  // by the flow's request id, for pushes
  std::vector<Completion> completions_;
  std::uint64_t order_ = 0;  // the last place given, see Completion

  Link link_ = Link::kDown;
  bool greeted_ = false;
  std::deque<Sent> in_flight_;  // in order of reply
  Instant heard_{};             // when something was last received
  std::string output_;
  std::string unread_;
  std::optional<wire::ReplyDecoder> decoder_;  // one per connection
  Instant connect_at_{};
  Millis backoff_{0};
  std::string trouble_;
  std::string peer_;
};

}  // namespace pawl::client
