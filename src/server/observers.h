// The connections that observe: which events each is to be sent, how far it has been sent them, and
// what happens to one that reads too slowly.
//
//   observers.events().append(batch, output);  // at the commit
//   observers.publish(batch);                  // once it is durable: everyone is sent what is new
//   observers.add(session, "elections/", observers.start_at(from).position);
//
// Events wait in one ring, shared by all. A connection is sent only as many as fit its output; the
// rest stays in the ring until it has read them. One thread owns it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "server/access_control.h"
#include "server/connections.h"
#include "server/event_ring.h"
#include "server/session.h"
#include "server/telemetry.h"
#include "wire/events.h"

namespace pawl::server {

class Observers {
 public:
  struct Limits {
    std::size_t in_all = limits::kObserversMax;
    std::size_t per_user = limits::kObserversPerUser;
  };
  Observers(EventRing::Bounds events, Limits limits, Connections& connections, Log& log,
            Telemetry& telemetry)
      : events_(events),
        limits_(limits),
        connections_(connections),
        log_(log),
        telemetry_(telemetry) {}

  [[nodiscard]] EventRing& events() { return events_; }
  // Up to this batch everything is durable: sends what is new.
  void publish(BatchId durable);

  // Where an observer begins: behind the event it has seen last, or with what happens from now on.
  struct Start {
    EventRing::Position position;
    wire::EventId id;     // the one to resume from, before any event was sent
    bool missed = false;  // what came after `from` is no longer known
  };
  [[nodiscard]] Start start_at(const std::optional<wire::EventId>& from) const;
  // Whether one more prefix is within the limits.
  [[nodiscard]] Refusal check_limits(const Session& session) const;
  void add(Session& session, std::string_view prefix, EventRing::Position start);
  // False when it was not observed.
  bool remove(Session& session, std::string_view prefix);
  void stop(Session& session);
  void stop_all() { observers_.clear(); }
  [[nodiscard]] std::size_t size() const { return observers_.size(); }
  // How many connections of one user observe, at most.
  [[nodiscard]] std::size_t greatest_user() const;

  // Sends an observer that is behind the next events, as far as its output has room. Returns
  // whether there were any for it.
  bool catch_up(Session& session);

 private:
  [[nodiscard]] std::size_t count_of(core::AccountId account) const;
  void send(Session& session);
  void cut(Session& session);

  EventRing events_;
  const Limits limits_;
  Connections& connections_;
  Log& log_;
  Telemetry& telemetry_;
  std::vector<Session*> observers_;
};

}  // namespace pawl::server
