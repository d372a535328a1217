// A guarded resource, as small as it can be: check and change are one step, and the fence is never
// forgotten. Half of the resources remember a set of operations (as SQL can), half one number (as
// Redis or an object store can). Everything that happens goes into the history, for P5.
//
// Calls travel through a network of their own that loses, delays, repeats and reorders them: a
// write may arrive long after its holder is gone.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "sim/history.h"
#include "sim/world.h"

namespace pawl::sim {

struct GuardCall {
  std::string resource;
  Effect::Kind kind = Effect::Kind::kWrite;
  Token token;
  std::uint64_t op = 0;
};

class GuardModel {
 public:
  using Answer = std::function<void(Effect::Verdict)>;

  GuardModel(World& world, History& history) : world_(world), history_(history) {}

  // Sends the call; the answer comes later, or never.
  void send(const GuardCall& call, Answer answer);
  // The resource's own process starts again. What it knows is durable.
  void restart();
  void heal() { lossy_ = false; }

 private:
  struct Resource {
    Token fence;
    std::set<std::uint64_t> done;  // Under the fence's token.
    std::uint64_t last = 0;
    bool exists = false;
  };

  void arrive(const GuardCall& call, const Answer& answer);
  Effect::Verdict judge(Resource& resource, const GuardCall& call);
  Effect::Verdict admit(Resource& resource, const GuardCall& call);
  void change(Resource& resource, const GuardCall& call, Effect& effect);
  void record(const Effect& effect);
  Nanos delay();

  World& world_;
  History& history_;
  std::map<std::string, Resource> resources_;
  bool lossy_ = true;
};

}  // namespace pawl::sim
