// What a holder does with its lease at the guarded resources: a writer advances each one to its
// token, reads it, and then writes and deletes with growing operation numbers, sending again what
// is not answered; a reader advances to its floor and checks. It never asks whether the lease still
// holds: that is the guards' part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/guard_model.h"

namespace pawl::sim {

class Worker {
 public:
  Worker(World& world, GuardModel& guard) : world_(world), guard_(guard) {}

  void begin(const Attempt& held);
  // Sends nothing more. What is under way arrives all the same.
  void stop() { ++life_; }
  void freeze(bool frozen) { frozen_ = frozen; }
  // The first thing a process does that was frozen in the middle of a write.
  void blurt();
  // A guard called the token stale: there is a newer holder.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  struct Place {
    std::string resource;
    std::uint64_t op = 0;
    bool writing = false;
  };

  void advance(std::size_t place);
  void look(std::size_t place);
  void next(std::size_t place);
  void write(std::size_t place);
  // Sends the call, again and again until it is answered.
  void call(const GuardCall& call, std::function<void(Effect::Verdict)> then, int tries = 0);
  template <class What>
  void later(Nanos delay, What what);

  World& world_;
  GuardModel& guard_;
  std::vector<Place> places_;
  Token token_;
  Token floor_;
  bool reads_ = false;
  bool frozen_ = false;
  bool refused_ = false;
  std::uint64_t life_ = 0;
};

}  // namespace pawl::sim
