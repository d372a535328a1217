// Acquire: asks, waits, and hands out a lease only when it is surely good (G5, G7).
//
//   ask ──granted, half of the TTL left──▶ told
//    │ ╲──granted, but late──▶ confirm (RENEW) ──answered in time──▶ told
//    ▼                            ╰──else──▶ give back (RELEASE)
//   wait (ASYNC; the grant comes as a push)
//
// However often it is sent, it is one request id. When nobody waits for the answer any more
// (cancel, time-out), a wait is withdrawn (CANCEL) and a grant that may exist is asked for once
// more, without waiting, and given back: never "granted to nobody" for longer than the network
// takes.
#pragma once

#include "client/deadline.h"
#include "client/flow.h"

namespace pawl::client {

class AcquireFlow final : public Flow {
 public:
  // `call.request` is set, and the call passed check().
  explicit AcquireFlow(AcquireCall call) : Flow(call.give_up), call_(std::move(call)) {}

  // What would not fit a request at all; everything else is pawld's to judge.
  [[nodiscard]] static std::optional<Error> check(const AcquireCall& call);

  void pushed(const wire::WaitPush& push, Instant now) override;
  void abandon(Instant now, std::string_view trouble) override;
  void cancel(Instant now) override;
  [[nodiscard]] const std::string* request() const override { return &call_.request; }
  [[nodiscard]] std::optional<std::uint64_t> position() const override;

 private:
  enum class Step : std::uint8_t { kAsk, kWait, kConfirm, kGiveBack, kWithdraw };

  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  void on_cut(Instant now) override;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<Held>(std::move(error));
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
  bool unwanted_ = false;  // nobody waits for the answer any more
};

}  // namespace pawl::client
