// What the client makes of etcd's answers.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "etcd/client.h"

namespace pawl::etcd {
namespace {

constexpr Nanos kAuthenticateTimeMax = std::chrono::seconds(10);

std::optional<KeyValue> first_found(const TxnResponse& answer) {
  for (const ResponseOp& op : answer.responses) {
    const auto* range = std::get_if<RangeResponse>(&op);
    if (range == nullptr) continue;
    return range->kvs.empty() ? std::nullopt : std::optional(range->kvs.front());
  }
  return std::nullopt;
}

}  // namespace

void Client::on_message(Calls::iterator at, std::size_t endpoint, std::string message,
                        Instant now) {
  Call& call = at->second;
  if (call.kind == Kind::kWatch) return on_watch_answer(at, endpoint, message, now);
  Attempt& attempt = *call.attempt_at(endpoint);
  if (!attempt.answer) {
    attempt.answer = std::move(message);
    return;
  }
  links_[endpoint].http2->cancel(attempt.stream);
  on_ended(at, endpoint, {std::nullopt, "etcd sent more than one message as an answer"}, now);
}

void Client::on_watch_answer(Calls::iterator at, std::size_t endpoint, const std::string& message,
                             Instant now) {
  Attempt& attempt = *at->second.attempt_at(endpoint);
  auto answer = decode_watch(message);
  if (!answer) {
    links_[endpoint].http2->cancel(attempt.stream);
    return on_ended(at, endpoint, {std::nullopt, answer.error().detail}, now);
  }
  // It exists; from now on its messages come when they come.
  attempt.resend = attempt.deadline = Instant::max();
  const bool canceled = answer->canceled;
  events_.emplace_back(WatchAnswer{at->first, std::move(*answer)});
  if (!canceled) return;
  links_[endpoint].http2->cancel(attempt.stream);
  on_ended(at, endpoint, {std::nullopt, "etcd has cancelled the watch"}, now);
}

void Client::on_ended(Calls::iterator at, std::size_t endpoint, const GrpcStatus& status,
                      Instant now) {
  Call& call = at->second;
  const auto ended = call.attempt_at(endpoint);
  PAWL_ASSERT(ended != call.attempts.end());
  const bool newest = std::next(ended) == call.attempts.end();
  const Attempt attempt = std::move(*ended);
  call.attempts.erase(ended);
  links_[endpoint].calls.erase(attempt.stream);
  if (newest && !call.due) {
    call.due = true;
    call.not_before = std::max(now, attempt.sent + options_.resend_pause);
  }
  settle(at, attempt, status, now);
}

void Client::settle(Calls::iterator at, const Attempt& attempt, const GrpcStatus& status,
                    Instant now) {
  const Kind kind = at->second.kind;
  // A watch does not end with an answer.
  if (kind == Kind::kWatch) return finish_without_answer(at, to_text(status));
  switch (judge(status)) {
    case Verdict::kAnswered: {
      std::string why;
      if (accept(at, attempt, why)) {
        links_[attempt.endpoint].suspect = false;
        if (kind != Kind::kStatus) last_good_ = attempt.endpoint;
        end_attempts(at->second);
        calls_.erase(at);
        return;
      }
      return retry(at, attempt, std::move(why), now);
    }
    case Verdict::kRefused:
      if (kind == Kind::kStatus) return on_status_refused(at, attempt, status, now);
      return finish_refused(at, status, to_text(status));
    case Verdict::kNeedsToken:
      if (kind == Kind::kStatus) return on_status_refused(at, attempt, status, now);
      if (options_.user.empty()) {
        return finish_refused(
            at, status,
            to_text(status) + "; etcd has users: configure a user and a password for it");
      }
      if (kind == Kind::kAuthenticate) return finish_without_answer(at, to_text(status));
      need_token(attempt);
      // Nothing was done, so that a transaction that is sent once may be sent.
      if (kind == Kind::kTxnOnce) {
        at->second.sends = {};
        at->second.not_before = now;
        return;
      }
      return send_again(at, attempt, to_text(status));
    case Verdict::kUnknown:
      if (kind == Kind::kAsk &&
          (status.is(GrpcCode::kFailedPrecondition) || status.is(GrpcCode::kUnimplemented)))
        return finish_refused(at, status, to_text(status));
      if (kind == Kind::kRange && status.is(GrpcCode::kOutOfRange))
        return finish_without_answer(at, to_text(status), says_compacted(status));
      if (kind == Kind::kAuthenticate && says_authentication_is_off(status)) {
        token_state_ = Token::kUnused;
        token_.clear();
        calls_.erase(at);
        return;
      }
      return retry(at, attempt, to_text(status), now);
  }
}

// The outcome is not known: the same bytes again, elsewhere.
void Client::retry(Calls::iterator at, const Attempt& attempt, std::string why, Instant now) {
  Link& link = links_[attempt.endpoint];
  const bool greets = at->second.kind == Kind::kStatus && link.state == Link::State::kGreeting;
  link.suspect = true;
  ask_status_soon(now);
  send_again(at, attempt, why);
  if (greets) drop(attempt.endpoint, why, now);
}

// Or the end of a call that is sent once.
void Client::send_again(Calls::iterator at, const Attempt& attempt, std::string why) {
  Call& call = at->second;
  if (!traits(call.kind).resends) return finish_without_answer(at, std::move(why));
  note_trouble(attempt.endpoint, std::move(why));
  // etcd hashes the password, which takes long on purpose. On a busy machine attempts that all end
  // too soon would keep it hashing for ever.
  if (call.kind == Kind::kAuthenticate)
    call.attempt_time = std::min(2 * call.attempt_time, kAuthenticateTimeMax);
}

// --- Answers that count --------------------------------------------------------------------------

// False if the answer cannot be used; `why` says so.
bool Client::accept(Calls::iterator at, const Attempt& attempt, std::string& why) {
  auto& [id, call] = *at;
  if (!attempt.answer) {
    why = "etcd sent an answer without a message";
    return false;
  }
  const std::string& bytes = *attempt.answer;
  const auto decoded = [&](const auto& answer) {
    if (!answer) why = answer.error().detail;
    return answer && accept_header(answer->header, attempt, why);
  };
  switch (call.kind) {
    case Kind::kTxn:
    case Kind::kTxnOnce: {
      auto answer = decode_txn(bytes);
      if (!decoded(answer)) return false;
      TxnDone done{.call = id, .sends = call.sends};
      done.outcome =
          answer->succeeded ? TxnDone::Outcome::kApplied : TxnDone::Outcome::kCompareFailed;
      done.found = first_found(*answer);
      done.went_back = note_revision(answer->header, attempt);
      done.answer = std::move(*answer);
      events_.emplace_back(std::move(done));
      return true;
    }
    case Kind::kRange: {
      auto answer = decode_range(bytes);
      if (!decoded(answer)) return false;
      RangeDone done{.call = id, .outcome = RangeDone::Outcome::kAnswered};
      done.went_back = note_revision(answer->header, attempt);
      done.answer = std::move(*answer);
      events_.emplace_back(std::move(done));
      return true;
    }
    case Kind::kAsk:
      asked_.push_back({id, {static_cast<std::uint32_t>(GrpcCode::kOk), {}}, bytes});
      return true;
    case Kind::kCompact: {
      const auto answer = decode_compaction(bytes);
      if (!decoded(answer)) return false;
      events_.emplace_back(CompactionDone{.call = id, .done = true});
      return true;
    }
    case Kind::kStatus: {
      auto answer = decode_status(bytes);
      if (!decoded(answer)) return false;
      on_status(attempt, std::move(*answer));
      return true;
    }
    case Kind::kAuthenticate: {
      auto answer = decode_authenticate(bytes);
      if (!decoded(answer)) return false;
      token_ = std::move(answer->token);
      token_state_ = Token::kKnown;
      return true;
    }
    case Kind::kWatch:
      break;
  }
  PAWL_ASSERT(false);
  return false;
}

// False if the answer is of another cluster.
bool Client::accept_header(const ResponseHeader& header, const Attempt& attempt, std::string& why) {
  if (cluster_id_ == 0) cluster_id_ = header.cluster_id;
  if (header.cluster_id == cluster_id_) return true;
  why = links_[attempt.endpoint].name +
        " belongs to another etcd cluster than the other endpoints; correct the list of endpoints";
  return false;
}

// Whether the answer, which is linearizable, is older than what was known when it was asked for.
bool Client::note_revision(const ResponseHeader& header, const Attempt& attempt) {
  revision_ = std::max(revision_, header.revision);
  return header.revision < attempt.revision_floor;
}

void Client::on_status(const Attempt& attempt, StatusResponse status) {
  Link& link = links_[attempt.endpoint];
  link.state = Link::State::kReady;
  link.asks_status = false;
  link.error.clear();
  link.status = std::move(status);
}

// etcd 3.6 tells its status to users only. The endpoint is there all the same; that it belongs to
// the cluster is checked with the first answer of another call.
void Client::on_status_refused(Calls::iterator at, const Attempt& attempt, const GrpcStatus& status,
                               Instant now) {
  if (!options_.user.empty()) need_token(attempt);
  finish_without_answer(at, to_text(status));
  Link& link = links_[attempt.endpoint];
  link.state = Link::State::kReady;
  link.status_due = std::min(link.status_due, now + kStatusAfterTrouble);
}

// --- Answers that do not -------------------------------------------------------------------------

void Client::need_token(const Attempt& attempt) {
  if (attempt.token_number != token_number_) return;  // It had an older token than we have now.
  if (token_state_ == Token::kNeeded || token_state_ == Token::kPending) return;
  token_number_ += 1;
  token_.clear();
  token_state_ = Token::kNeeded;
}

void Client::finish_without_answer(Calls::iterator at, std::string why, bool compacted) {
  const CallId id = at->first;
  end_attempts(at->second);
  const Call call = std::move(at->second);
  calls_.erase(at);
  switch (call.kind) {
    case Kind::kTxn:
      events_.emplace_back(TxnDone{.call = id, .sends = call.sends, .text = std::move(why)});
      break;
    case Kind::kTxnOnce:
      events_.emplace_back(TxnDone{.call = id,
                                   .unknown = call.sends.count > 0,
                                   .sends = call.sends,
                                   .text = std::move(why)});
      break;
    case Kind::kAsk:
      asked_.push_back({id, {std::nullopt, std::move(why)}});
      break;
    case Kind::kRange: {
      const auto outcome = compacted ? RangeDone::Outcome::kCompacted : RangeDone::Outcome::kFatal;
      events_.emplace_back(RangeDone{.call = id, .outcome = outcome, .text = std::move(why)});
      break;
    }
    case Kind::kCompact:
      events_.emplace_back(CompactionDone{.call = id, .text = std::move(why)});
      break;
    case Kind::kWatch:
      events_.emplace_back(WatchEnded{id, std::move(why)});
      break;
    case Kind::kStatus: {
      Link& link = links_[*call.last_endpoint];
      link.asks_status = false;
      link.error = why;
      break;
    }
    case Kind::kAuthenticate:
      token_state_ = Token::kNeeded;
      refuse_waiting_calls("etcd refuses the user \"" + options_.user + "\": " + why);
      break;
  }
}

void Client::finish_refused(Calls::iterator at, const GrpcStatus& status, std::string why) {
  const CallId id = at->first;
  const Call& call = at->second;
  const bool denied = !status.is(GrpcCode::kInvalidArgument) || judge(status) != Verdict::kRefused;
  if (call.kind == Kind::kTxn || call.kind == Kind::kTxnOnce) {
    events_.emplace_back(
        TxnDone{.call = id, .denied = denied, .sends = call.sends, .text = std::move(why)});
  } else if (call.kind == Kind::kRange) {
    events_.emplace_back(RangeDone{.call = id, .denied = denied, .text = std::move(why)});
  } else if (call.kind == Kind::kAsk) {
    asked_.push_back({id, {status.code, std::move(why)}});
  } else {
    return finish_without_answer(at, std::move(why));
  }
  end_attempts(at->second);
  calls_.erase(at);
}

void Client::refuse_waiting_calls(const std::string& why) {
  for (auto at = calls_.begin(); at != calls_.end();) {
    const auto next = std::next(at);
    if (at->second.attempts.empty() && waits_for_token(at->second))
      finish_refused(at, {static_cast<std::uint32_t>(GrpcCode::kUnauthenticated), why}, why);
    at = next;
  }
}

}  // namespace pawl::etcd
