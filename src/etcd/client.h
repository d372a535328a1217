// A client of an etcd cluster, without sockets and without a clock: bytes and the time are passed
// in. etcd/driver.h connects it to real sockets; a simulator can connect it to anything else.
//
//   Client client({.endpoints = {"db1:2379", "db2:2379"}}, network);
//   const CallId call = client.transact(encode(request));
//   client.pump(now);                                    // connects, sends
//   client.on_connected(0, now); client.on_received(0, bytes, now); client.pump(now); …
//   for (Event& event : client.take_events()) …          // TxnDone of the call, sooner or later
//   sleep until client.deadline(), or until the network has something
//
// One connection to each endpoint. A call goes to the leader if it is known, and has `attempt_time`
// there. If its outcome is unknown then, the same bytes go to the next endpoint, not sooner than
// `resend_pause` after the last send, until etcd decides (see Verdict) or the caller cancels. So a
// transaction that compares what it overwrites applies exactly once. The earlier sends are waited
// for as well, for some time: an etcd that always takes longer than `attempt_time` would otherwise
// never be heard.
//
// Not for two threads at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/boot_time.h"
#include "base/types.h"
#include "etcd/http2_connection.h"
#include "etcd/messages.h"
#include "etcd/verdict.h"

namespace pawl::etcd {

using CallId = Number<struct EtcdCallTag>;

struct ClientOptions {
  std::vector<std::string> endpoints = {};  // "host:port" each; at least one.
  bool tls = false;                         // The network encrypts.
  std::string user = {};  // Empty: etcd has no users, or knows us by our certificate.
  std::string password = {};
  Nanos attempt_time = std::chrono::seconds(1);
  // Of an attempt to log in, during which etcd computes the hash of a password. Nothing: as others.
  std::optional<Nanos> authenticate_time = {};
  Nanos resend_pause = std::chrono::milliseconds(50);
  // From the start of a connection until etcd has answered on it.
  Nanos connect_time = std::chrono::seconds(1);
  Nanos reconnect_pause = std::chrono::milliseconds(200);
  // A connection is closed if an answer is due and nothing was received for so long.
  Nanos silence_max = std::chrono::seconds(1);
  Nanos status_interval = std::chrono::seconds(10);
};

// What the client asks of whatever carries its bytes. Endpoints are numbered as in ClientOptions.
// None of these may call the client back before it returns.
class Network {
 public:
  virtual ~Network() = default;
  // on_connected() or on_closed() follows, unless close() comes first.
  virtual void connect(std::size_t endpoint) = 0;
  // All of `bytes`, after those before; what does not fit yet is kept.
  virtual void send(std::size_t endpoint, std::string_view bytes) = 0;
  // Nothing follows.
  virtual void close(std::size_t endpoint) = 0;
};

// --- What happened -------------------------------------------------------------------------------

// How often a call was sent, and what that says.
struct Sends {
  // 0: it was never sent, so nothing happened.
  std::uint32_t count = 0;
  // Not later than the first send. What must not end late is counted from here, because it may be
  // the first send that took effect.
  Instant first{};
};

struct TxnDone {
  enum class Outcome : std::uint8_t {
    kApplied,
    // This send was not applied. If it was sent before, `found` may be what it wrote itself: then
    // an earlier send was.
    kCompareFailed,
    kFatal,  // `text` says why. An earlier send may have been applied.
  };
  CallId call;
  Outcome outcome = Outcome::kFatal;
  bool denied = false;   // kFatal, because this user may not.
  bool unknown = false;  // kFatal, of transact_once() only: it was sent, and may be applied.
  Sends sends = {};
  TxnResponse answer = {};
  // The first key of the first range of the answer.
  std::optional<KeyValue> found = {};
  // The revision is lower than one that was seen before the send: etcd was restored from a copy.
  bool went_back = false;
  std::string text = {};
};

struct RangeDone {
  enum class Outcome : std::uint8_t {
    kAnswered,
    kCompacted,  // The revision that was asked for is forgotten: begin again.
    kFatal,
  };
  CallId call;
  Outcome outcome = Outcome::kFatal;
  bool denied = false;  // kFatal, because this user may not.
  RangeResponse answer = {};
  bool went_back = false;  // As in TxnDone.
  std::string text = {};
};

// The end of a question: take_asked().
struct AskDone {
  CallId call;
  GrpcStatus status;         // kOk: `message` has the answer. Anything else is final as well.
  std::string message = {};  // Not decoded.
};

// The end of a call that is sent once.
struct CompactionDone {
  CallId call;
  bool done = false;      // False: it may have been done all the same; `text` says what happened.
  std::string text = {};  // "required revision has been compacted": someone else was faster.
};

// One message of a watch. If `canceled`, nothing follows but WatchEnded.
struct WatchAnswer {
  CallId call;
  WatchResponse answer;
};
// The last event of a watch, unless it was cancelled here.
struct WatchEnded {
  CallId call;
  std::string text;
};

// An outcome that is unknown, or an endpoint that failed: for the log and for counting. Nothing
// needs to be done.
struct Trouble {
  std::string endpoint;
  std::string text;
};

using Event = std::variant<TxnDone, RangeDone, CompactionDone, WatchAnswer, WatchEnded, Trouble>;

// What is known of an endpoint.
struct EndpointView {
  std::string name;
  bool usable = false;                   // Connected, and it has answered.
  std::string error;                     // Why it is not usable, if that is known.
  std::optional<StatusResponse> status;  // As last received, on this connection.
};

class Client {
 public:
  Client(ClientOptions options, Network& network);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // --- Calls. Each is sent by the next pump(), if there is an endpoint to send it to ------------
  // At most limits::kEtcdCallsMax at a time, each of limits::kEtcdRequestMax bytes at most.
  // `request` is encode(TxnRequest): these bytes are sent, however often. TxnDone follows.
  CallId transact(std::string request, std::optional<Nanos> attempt_time = {});
  // The same for a transaction that may not be applied twice: it is sent to one endpoint, once (and
  // again only if etcd has refused to look at it, because it did not know the user).
  CallId transact_once(std::string request, std::optional<Nanos> attempt_time = {});
  // A call that changes nothing, of any service: "/etcdserverpb.Auth/RoleList". An AskDone follows,
  // in take_asked().
  CallId ask(std::string path, std::string request);
  // RangeDone follows. The answer is linearizable: not older than anything known at the call. Give
  // large answers more time: an attempt that always ends too soon would be repeated for ever.
  CallId range(const RangeRequest& request, std::optional<Nanos> attempt_time = {});
  // CompactionDone follows. Sent once.
  CallId compact(std::int64_t revision);
  // WatchAnswers follow, and WatchEnded; the client does not open it again. The next watch goes to
  // another endpoint than the last one, if there is another.
  CallId watch(const WatchCreateRequest& request);
  // The watch is asked up to which revision it has sent everything; a WatchAnswer without events.
  void ask_progress(CallId watch);
  // Whether a call that has not ended was sent at least once.
  [[nodiscard]] bool was_sent(CallId call) const;
  // Forgets a call; no event of it follows. Whether it has an effect remains unknown.
  void cancel(CallId call);

  // --- From the network --------------------------------------------------------------------------
  void on_connected(std::size_t endpoint, Instant now);
  void on_received(std::size_t endpoint, std::string_view bytes, Instant now);
  void on_closed(std::size_t endpoint, const std::string& why, Instant now);

  // --- Time --------------------------------------------------------------------------------------
  // Does what is due, and hands the network what is to be sent. Call it after any of the functions
  // above, and at deadline().
  void pump(Instant now);
  [[nodiscard]] Instant deadline() const;

  // --- What happened -----------------------------------------------------------------------------
  [[nodiscard]] std::vector<Event> take_events();
  [[nodiscard]] std::vector<AskDone> take_asked();
  [[nodiscard]] std::vector<EndpointView> endpoints() const;
  // The greatest revision of any linearizable answer.
  [[nodiscard]] std::int64_t revision() const { return revision_; }

 private:
  enum class Kind : std::uint8_t {
    kTxn,
    kTxnOnce,
    kRange,
    kAsk,
    kCompact,
    kWatch,
    kStatus,
    kAuthenticate
  };
  // What distinguishes the kinds of calls.
  struct Traits {
    std::string_view path;  // Empty: each call has its own.
    bool resends;           // Until the outcome is known.
    bool needs_token;       // It is not sent without one, if there are users.
    bool needs_leader;      // The endpoint refuses it while it knows of no leader.
    bool stays;             // It is waited for while it is sent elsewhere as well.
  };
  // One send of a call.
  struct Attempt {
    std::size_t endpoint = 0;
    StreamId stream;
    Instant sent{};
    Instant resend{};    // Without an answer by then the call is sent elsewhere as well.
    Instant deadline{};  // Then it is given up.
    std::int64_t revision_floor = 0;  // An answer below it is older than what was known.
    std::uint64_t token_number = 0;
    std::optional<std::string> answer = {};
  };
  struct Call {
    Kind kind;
    std::string request;
    Nanos attempt_time;
    std::string path = {};  // kAsk
    Sends sends = {};
    bool due = true;                                // To be sent, at not_before.
    Instant not_before{};                           // The next attempt.
    std::optional<std::size_t> last_endpoint = {};  // Of the last attempt.
    std::vector<Attempt> attempts = {};             // The newest last; one for an endpoint at most.

    [[nodiscard]] std::vector<Attempt>::iterator attempt_at(std::size_t endpoint);
  };
  // A connection to one endpoint.
  struct Link {
    enum class State : std::uint8_t { kClosed, kConnecting, kGreeting, kReady };
    std::string name;
    State state = State::kClosed;
    std::unique_ptr<Http2Connection> http2 = {};
    Instant due{};    // kClosed: connect then. kConnecting, kGreeting: give up then.
    Instant heard{};  // The last bytes.
    Instant status_due{};
    bool asks_status = false;
    bool suspect = false;  // Its last call failed; others are preferred until it answers.
    std::optional<StatusResponse> status = {};
    std::string error = {};
    std::map<StreamId, CallId> calls = {};
  };
  enum class Token : std::uint8_t { kUnused, kNeeded, kPending, kKnown };
  using Calls = std::map<CallId, Call>;
  // After a failure the leader may be another one.
  static constexpr Nanos kStatusAfterTrouble = std::chrono::seconds(1);
  // An attempt is waited for as long as that many last.
  static constexpr int kAttemptsPatience = 3;

  static const Traits& traits(Kind kind);
  CallId add(Kind kind, std::string request);
  CallId add_bounded(Kind kind, std::string request);
  // Connections.
  void open(std::size_t endpoint, Instant now);
  void drop(std::size_t endpoint, std::string why, Instant now);
  void check_link(std::size_t endpoint, Instant now);
  [[nodiscard]] Instant status_at(const Link& link) const;
  void ask_status(std::size_t endpoint, Instant now);
  void ask_status_soon(Instant now);
  void take_call_events(std::size_t endpoint, Instant now);
  [[nodiscard]] bool is_usable(const Link& link) const;
  // Sending.
  void send_call(Calls::iterator call, std::size_t endpoint, Instant now);
  [[nodiscard]] std::optional<std::size_t> choose(const Call& call) const;
  [[nodiscard]] std::optional<std::size_t> first_usable_from(std::size_t start) const;
  [[nodiscard]] std::size_t preferred() const;
  [[nodiscard]] bool waits_for_token(const Call& call) const;
  void check_attempts(Calls::iterator call, Instant now);
  void give_up(Calls::iterator call, std::size_t endpoint, Instant now);
  void send_elsewhere(Call& call, Instant now);
  [[nodiscard]] bool is_silent(const Attempt& attempt, Instant now) const;
  void end_attempts(Call& call);
  void send_what_is_due(Instant now);
  bool flush(std::size_t endpoint, Instant now);
  // Answers.
  void on_message(Calls::iterator call, std::size_t endpoint, std::string message, Instant now);
  void on_ended(Calls::iterator call, std::size_t endpoint, const GrpcStatus& status, Instant now);
  void settle(Calls::iterator call, const Attempt& attempt, const GrpcStatus& status, Instant now);
  [[nodiscard]] bool accept(Calls::iterator call, const Attempt& attempt, std::string& why);
  bool accept_header(const ResponseHeader& header, const Attempt& attempt, std::string& why);
  [[nodiscard]] bool note_revision(const ResponseHeader& header, const Attempt& attempt);
  void on_watch_answer(Calls::iterator call, std::size_t endpoint, const std::string& message,
                       Instant now);
  void on_status(const Attempt& attempt, StatusResponse status);
  void on_status_refused(Calls::iterator call, const Attempt& attempt, const GrpcStatus& status,
                         Instant now);
  void retry(Calls::iterator call, const Attempt& attempt, std::string why, Instant now);
  void send_again(Calls::iterator call, const Attempt& attempt, std::string why);
  void finish_without_answer(Calls::iterator call, std::string why, bool compacted = false);
  // etcd has refused it, so that it had no effect.
  void finish_refused(Calls::iterator call, const GrpcStatus& status, std::string why);
  void need_token(const Attempt& attempt);
  void refuse_waiting_calls(const std::string& why);
  void note_trouble(std::size_t endpoint, std::string text);

  const ClientOptions options_;
  Network& network_;
  std::vector<Link> links_;
  Calls calls_;
  std::uint64_t last_call_ = 0;
  std::vector<Event> events_;
  std::vector<AskDone> asked_;
  std::size_t troubles_ = 0;      // in events_
  std::size_t last_good_ = 0;     // The endpoint that answered last.
  std::size_t next_watch_ = 0;    // The endpoint for the next watch.
  std::uint64_t cluster_id_ = 0;  // 0: not known yet.
  std::int64_t revision_ = 0;
  Token token_state_;
  std::string token_;
  std::uint64_t token_number_ = 0;  // Counts the tokens that were given up.
  Instant pumped_at_{};
};

}  // namespace pawl::etcd
