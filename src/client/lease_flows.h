// Renew, release, and every other command: one command, one reply.
#pragma once

#include "client/deadline.h"
#include "client/flow.h"

namespace pawl::client {

// The deadline of a renewal counts from the send that was answered. An answer that arrives after
// its own deadline is of no use, and RENEW is sent again.
class RenewFlow final : public Flow {
 public:
  explicit RenewFlow(const RenewCall& call) : Flow(call.give_up), call_(call) {}

 private:
  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  [[nodiscard]] Result<wire::RenewalReply> read(const wire::Value& value) const;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<RenewResult>(std::move(error));
  }

  const RenewCall call_;
  Instant sent_{};
  int late_ = 0;
};

// Renewals of several leases. The caller computes the deadlines.
class RenewManyFlow final : public Flow {
 public:
  explicit RenewManyFlow(RenewManyCall call) : Flow(call.give_up), call_(std::move(call)) {}

 private:
  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<RenewManyResult>(std::move(error));
  }

  const RenewManyCall call_;
  Instant sent_{};
};

// Repeated until confirmed. It continues after the caller has stopped waiting, until the TTL has
// passed: then the lease, which is not renewed any more, has ended by itself. Hard case 8.
class ReleaseFlow final : public Flow {
 public:
  ReleaseFlow(const ReleaseCall& call, Instant now)
      : Flow(call.give_up), call_(call), over_(now + call.ttl * 2) {}

  void abandon(Instant now, std::string_view connection_error) override;

 private:
  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<ReleaseResult>(std::move(error));
  }

  const ReleaseCall call_;
  const Instant over_;
};

class CommandFlow final : public Flow {
 public:
  explicit CommandFlow(CommandCall call) : Flow(call.give_up), call_(std::move(call)) {}

 private:
  void append(std::string& out, Instant now) override;
  void on_reply(const wire::Value& value, Instant now) override;
  void resume_after_disconnect(Instant now) override;
  [[nodiscard]] bool repeatable() const override {
    return call_.repeat == CommandCall::Repeat::kHarmless;
  }
  [[nodiscard]] Outcome failure(Error error) const override {
    return Result<wire::Value>(std::move(error));
  }

  const CommandCall call_;
};

}  // namespace pawl::client
