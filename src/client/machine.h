// The client without I/O: calls, received bytes and the time go in; bytes to send, completions and
// the next timer come out. A driver owns the socket and the clock: driver.h (threads),
// poll_connection.h (a poll loop), or the simulator. No thread, no clock, no lock.
//
//   Machine machine(random);
//   const CallId call = machine.acquire({.locks = {"reports/nightly"}}, now);
//   if (machine.wants_connection(now)) {
//     connect(machine.node()) ? machine.connected(now) : machine.disconnected(why, now);
//   }
//   send(machine.take_output());
//   machine.received(bytes, now);  // when bytes arrive
//   machine.on_timer(now);         // when machine.next_timer() is due
//   for (Completion& done : machine.take_completions()) handle(done);
//
// Read the socket first, then the clock, and pass that `now`: an answer must never be dated earlier
// than it arrived. `now` also counts as the time of sending, so take and send the output at once.
//
// Any number of calls share one connection. Replies are matched in order, the end of a wait by its
// request id. When the connection is lost, calls that may be repeated are sent again, an acquire
// with the same request id (G5).
//
// Of several pawld that share a store one is active. The machine tries them in turn (nodes.h), goes
// where a standby sends it, and continues there as after any lost connection.
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
#include "client/backoff.h"
#include "client/calls.h"
#include "client/flow.h"
#include "client/nodes.h"
#include "client/observe_flow.h"
#include "client/time.h"
#include "client/timer_queue.h"
#include "pawl/types.h"
#include "wire/reply_decoder.h"

namespace pawl::client {

// In an error, between the address of a port that speaks TLS and the address to use instead.
inline constexpr std::string_view kSpeaksTls = " speaks TLS: write ";
// In the error for a port where something else than pawld answers, behind the address.
inline constexpr std::string_view kNotPawld = ": not a pawld server: ";

struct MachineOptions {
  std::string name = "pawl";        // shown by CLIENT LIST
  Auth auth = {};                   // sent with the greeting of each connection
  std::vector<Address> nodes = {};  // Empty: one, that only the driver knows.
  Millis answer_timeout{5'000};  // The connection is dropped when an answer is overdue this long.
  Millis backoff_min{50};        // Between rounds of attempts to connect; doubles, with jitter,
  Millis backoff_max{2'000};     // up to this.
  Millis probe_after{30'000};    // After this silence a connection with only waits gets a PING.
  // A driver that can have two connections sets this: see Machine::wants_replacement().
  bool can_replace = false;
};

// A request id is what makes a retry a retry (G5): 22 characters of [A-Za-z0-9_-] with 128 random
// bits, because a request id is enough to fetch the lease.
[[nodiscard]] std::string make_request_id(Random& random);

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
  // Completes the call at once. A lease that an acquire may have got is released in the background.
  // Does nothing when the call has completed before: then the caller must release the lease.
  void cancel(CallId call, Instant now);
  // Shortens the answer timeout of the options, and the time between attempts to connect, to
  // `limit`. kNoLimit: as the options say.
  static constexpr Millis kNoLimit = Millis::max();
  void limit_answer_timeout(Millis limit) { answer_timeout_max_ = limit; }

  // --- Inputs from the driver --------------------------------------------------------------------
  // `peer` is the server's address, for messages.
  void connected(Instant now, std::string peer = {});
  // The same, and it is another of the nodes than node() says.
  void connected_to(const Address& node, Instant now) {
    nodes_.use(node);
    connected(now, to_text(node));
  }
  // The connection is gone, or the attempt failed. `why` is for messages.
  void disconnected(std::string_view why, Instant now);
  // Every node failed: round_is_over(). Calls that cannot have taken effect complete with kUnavailable; the
  // others continue until their `give_up`. A driver that wants to keep trying does not call this.
  void all_addresses_failed();
  void received(std::string_view bytes, Instant now);
  void on_timer(Instant now);

  // --- What the driver does ----------------------------------------------------------------------
  [[nodiscard]] bool wants_connection(Instant now) const;
  // Where to, and where the present connection leads to.
  [[nodiscard]] const Address& node() const { return nodes_.current(); }
  [[nodiscard]] const Nodes& nodes() const { return nodes_; }
  // Whether every one of them was tried since one answered, or the last such round.
  [[nodiscard]] bool round_is_over() const { return round_is_over_; }
  // The connection is of no use (protocol error, wrong server, silence, a standby): close it, then
  // disconnected().
  [[nodiscard]] bool wants_close() const { return link_ == Link::kClosing; }
  // An answer is overdue, and a hang-up would cost waiting acquires their place. Connect anew, and
  // only once pawld has answered there: disconnected(), then connected(). pawld may only be busy;
  // then the old connection answers, and this becomes false.
  [[nodiscard]] bool wants_replacement() const { return overdue_; }
  // Why the machine wants to close, or the `why` of the last disconnected(); for messages.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  [[nodiscard]] std::string take_output();
  [[nodiscard]] std::vector<Completion> take_completions();
  // Events of all observations, in order. A cancelled observation has none.
  [[nodiscard]] std::vector<ObservedEvent> take_observed_events() { return observers_.take(); }
  [[nodiscard]] bool has_completions() const { return !completions_.empty(); }
  // When on_timer() is next due, wants_connection() included; kNever when nothing is.
  [[nodiscard]] Instant next_timer() const;

  // Whether a pawld has ever accepted a connection of this machine (HELLO was answered).
  [[nodiscard]] bool reached() const { return reached_; }
  // Whether pawld has answered a call on the present connection. A standby only greets.
  [[nodiscard]] bool is_served() const { return link_ == Link::kReady && served_; }
  // Nothing is left to do, not even in the background.
  [[nodiscard]] bool idle() const { return flows_.empty(); }
  // The position of a waiting acquire in its queue, as last received.
  [[nodiscard]] std::optional<std::uint64_t> position(CallId call) const;

 private:
  enum class Link : std::uint8_t { kDown, kHandshake, kReady, kClosing };
  struct Sent {
    CallId call;  // or HELLO, or a probe
    Instant at;
  };

  CallId start(std::unique_ptr<Flow> flow);
  void start(CallId id, std::unique_ptr<Flow> flow);
  CallId next_call() { return CallId{++last_call_}; }
  void send_ready(Instant now);
  void collect_results(CallId call, Flow& flow);
  void on_value(const wire::Value& value, Instant now);
  void on_push(const wire::Value& push, Instant now);
  void on_hello_reply(const wire::Value& value);
  void refuse_all_calls(const Error& error);
  void drop_connection(std::string why);
  [[nodiscard]] Nodes::Next choose_node();
  void on_put_off(const std::string& reply);
  void leave_when_answered();
  template <class Visit>
  void for_each_flow(Visit visit);
  void wake(Flow& flow, Instant now);
  [[nodiscard]] Millis answer_timeout() const;
  [[nodiscard]] bool reply_overdue(Instant now) const;
  void on_overdue(Instant now);
  [[nodiscard]] Instant probe_at() const;
  void probe(Instant now);

  Random& random_;
  const MachineOptions options_;
  Millis answer_timeout_max_ = kNoLimit;

  std::uint64_t last_call_ = 0;
  Observers observers_;                                    // outlives the flows, which refer to it
  std::map<CallId, std::unique_ptr<Flow>> flows_;          // in order of call
  std::set<CallId> ready_;                                 // those with something to send
  TimerQueue<CallId> timers_;                              // Flow::next_timer() of each
  std::unordered_map<std::string_view, CallId> acquires_;  // by the flow's request id, for pushes
  std::vector<Completion> completions_;
  std::uint64_t order_ = 0;  // of the last completion or event

  Link link_ = Link::kDown;
  Nodes nodes_;
  bool round_is_over_ = false;
  bool served_ = false;                 // a call was answered on this connection
  std::optional<std::string> standby_;  // READONLY was answered: the active one, or empty
  std::string leaving_;                 // why the connection is dropped once all is answered
  bool reached_ = false;
  std::deque<Sent> in_flight_;  // in order of reply
  Instant last_received_{};     // when something was last received
  bool overdue_ = false;        // see wants_replacement()
  std::string output_;
  std::string unread_;
  std::optional<wire::ReplyDecoder> decoder_;  // one per connection
  Instant connect_at_{};
  Backoff backoff_;
  std::string last_error_;
  std::string peer_;
};

}  // namespace pawl::client
