// Receives pawld's events of one lock while a drill runs: who was granted it, and when that ended.
// Reconnects when pawld was restarted; events from before that are missing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/address.h"
#include "client/poll_connection.h"
#include "drill/pollable.h"
#include "pawl/result.h"
#include "pawl/types.h"
#include "wire/events.h"

namespace pawl::drill {

class LockObserver final : public Pollable {
 public:
  static Result<std::unique_ptr<LockObserver>> open(const std::vector<client::Address>& pawld,
                                                    const Auth& auth, const std::string& lock);

  // True once pawld sends events.
  [[nodiscard]] bool subscribed() const { return subscribed_; }
  // Why pawld refuses to send events; empty: it does not refuse.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  // The events of this lock since the last call, in order.
  [[nodiscard]] std::vector<wire::EventPush> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] std::vector<pollfd> interest() const override { return {pawld_.interest()}; }
  void on_ready(std::span<const pollfd> ready) override;
  [[nodiscard]] client::Instant next_timer() const override { return pawld_.next_timer(); }

 private:
  LockObserver(std::vector<client::Endpoint> endpoints, const Auth& auth, std::string lock);

  const std::string lock_;
  SystemRandom random_;
  client::PollConnection pawld_;
  bool subscribed_ = false;
  std::string refusal_;
  std::vector<wire::EventPush> events_;
};

}  // namespace pawl::drill
