// Acquire: asks, waits, and returns a lease only when it is certainly valid (G5, G7).
//
//   ask ──granted, half of the TTL left──▶ complete
//    │ ╲──granted, but late──▶ confirm (RENEW) ──answered in time──▶ complete
//    ▼                            ╰──else──▶ give back (RELEASE)
//   wait (ASYNC; the grant comes as a push)
//
// All sends use one request id. When the caller stops waiting (cancel, timeout), a wait is
// withdrawn (CANCEL). A grant that may exist is asked for once more, without waiting, and released:
// no lock is held for an absent caller for longer than the network takes.
#pragma once

#include "client/deadline.h"
#include "client/flow.h"

namespace pawl::client {

class AcquireFlow final : public Flow {
 public:
  // `call.request` is set, and the call passed check().
  explicit AcquireFlow(AcquireCall call) : Flow(call.give_up), call_(std::move(call)) {}

  // What does not fit into a request at all; pawld checks everything else.
  [[nodiscard]] static std::optional<Error> check(const AcquireCall& call);

  void on_push(const wire::WaitPush& push, Instant now) override;
  void abandon(Instant now, std::string_view connection_error) override;
  void cancel(Instant now) override;
  [[nodiscard]] const std::string* request() const override { return &call_.request; }
  [[nodiscard]] std::optional<std::uint64_t> position() const override;

 private:
  enum class Step : std::uint8_t { kAsk, kWait, kConfirm, kGiveBack, kWithdraw };

  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  void resume_after_disconnect(Instant now) override;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<GrantedLease>(std::move(error));
  }

  void append_ask(std::string& out, Instant now);
  void asked(const wire::Value& value, Instant now);
  void confirmed(const wire::Value& value, Instant now);
  void withdrawn(const wire::Value& value);
  void granted(const wire::GrantReply& grant, Instant now);
  void hand_out(Instant deadline);
  void give_back(Error why, Instant now);
  void leave(Error why, Instant now);
  void go(Step step) {
    step_ = step;
    ready();
  }

  const AcquireCall call_;
  Step step_ = Step::kAsk;
  std::optional<Instant> first_sent_;
  Instant sent_{};                         // of the newest confirmation
  std::optional<wire::GrantReply> grant_;  // once known
  std::uint64_t position_ = 0;
  int confirmations_ = 0;
  int superseded_ = 0;
  bool unwanted_ = false;  // the caller has stopped waiting
};

}  // namespace pawl::client
