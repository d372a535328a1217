// A simulated client that knows no libpawl: plain commands over RESP2, or RESP3, as a script with
// redis-cli or any Redis library sends them. It waits in ACQUIRE … WAIT without ASYNC, hangs up in
// the middle of that, asks again with the same request id on another connection while the first one
// still waits, and keeps what it gets with RENEW, by the rule of G7.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "client/deadline.h"
#include "sim/client_node.h"
#include "sim/network.h"
#include "wire/replies.h"
#include "wire/reply_decoder.h"

namespace pawl::sim {

class PlainNode final : public Endpoint {
 public:
  // `waits_on` gets each connection on which an ACQUIRE is sent, and its owner.
  using WaitsOn = std::function<void(LinkId, const std::string& owner)>;
  PlainNode(World& world, Network& network, GuardModel& guard, int number, Rate rate,
            Workload workload, History& history, WaitsOn waits_on);

  void begin();
  // Finish what is held, start nothing new and fail no more.
  void wind_down() { winding_down_ = true; }
  [[nodiscard]] bool idle() const { return work_ == Work::kIdle; }
  [[nodiscard]] std::uint64_t grants() const { return grants_; }
  [[nodiscard]] std::string state() const;

  void on_bytes(LinkId link, std::string bytes) override;
  void on_hangup(LinkId link) override;

 private:
  enum class Work { kIdle, kAsking, kHolding, kReleasing };
  enum class Command { kHello, kAcquire, kRenew, kRelease };
  struct Owed {
    Command command;
    client::Instant sent;
    Moment sent_at;
  };
  struct Connection {
    wire::ReplyDecoder decoder;
    std::string unread;
    std::deque<Owed> owed;  // In order of reply.
  };

  [[nodiscard]] client::Instant now() const { return client::Instant(rate_.local(world_.now())); }
  [[nodiscard]] Moment moment(client::Instant at) const {
    return rate_.moment(at.time_since_epoch());
  }
  [[nodiscard]] Attempt& attempt() { return history_.attempts[attempt_]; }

  void pump();
  void work();
  void wake();
  void connect();
  void connected(LinkId link);
  void send(Command command, std::string bytes);
  void resume();  // Sends what is due on a new connection.
  void drop(LinkId link);
  void drop_all();
  [[nodiscard]] bool still_waits() const;

  void start_acquire();
  void ask();
  void ask_elsewhere();
  void give_up_asking(const char* why);
  void take(LinkId link, const Owed& owed, const wire::Value& value);
  void asked(LinkId link, const wire::Value& value);
  void granted(const wire::GrantReply& grant);
  void renew();
  void renewed(const Owed& owed, const wire::Value& value);
  void keep_until(client::Instant deadline);
  void start_release();
  void released(const wire::Value& value);
  void rest();

  World& world_;
  Network& network_;
  const int number_;
  const Rate rate_;
  const Workload workload_;
  History& history_;
  const WaitsOn waits_on_;
  Worker worker_;

  std::map<LinkId, Connection> connections_;
  std::optional<LinkId> current_;  // The newest one.
  std::uint64_t connecting_ = 0;   // The attempt that is under way; 0: none.
  std::uint64_t attempts_to_connect_ = 0;
  bool resp3_ = false;

  Work work_ = Work::kIdle;
  bool winding_down_ = false;
  std::size_t attempt_ = 0, release_ = 0;
  Millis wait_{0};
  std::optional<client::Instant> first_sent_;
  client::Instant act_at_{}, hang_up_at_{}, move_at_{}, answer_by_{}, give_up_{}, renew_at_{},
      deadline_{};
  std::uint64_t alarm_ = 0;
  std::uint64_t grants_ = 0;
};

}  // namespace pawl::sim
