// What pawld says of one lock while a drill runs: who was granted it, and when it ended. Over
// restarts of pawld too, except for what happened while nobody was connected.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/address.h"
#include "client/poll_connection.h"
#include "drill/part.h"
#include "pawl/result.h"
#include "pawl/types.h"
#include "wire/events.h"

namespace pawl::drill {

class Observer final : public Part {
 public:
  static Result<std::unique_ptr<Observer>> open(const std::vector<client::Address>& pawld,
                                                const Auth& auth, const std::string& lock);

  // From now on nothing is missed, as long as pawld is there.
  [[nodiscard]] bool began() const { return began_; }
  // Why pawld does not tell; empty: it does, or is still being asked.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  // Of this lock alone, in order.
  [[nodiscard]] std::vector<wire::EventPush> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] std::vector<pollfd> interest() const override { return {pawld_.interest()}; }
  void turn(std::span<const pollfd> ready) override;
  [[nodiscard]] client::Instant timer() const override { return pawld_.next_timer(); }

 private:
  Observer(std::vector<client::Endpoint> endpoints, const Auth& auth, std::string lock);

  const std::string lock_;
  SystemRandom random_;
  client::PollConnection pawld_;
  bool began_ = false;
  std::string refusal_;
  std::vector<wire::EventPush> events_;
};

}  // namespace pawl::drill
