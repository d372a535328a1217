// Where a drill takes place: workers, pawld, the network between them, and the record of all that
// happens.
//
//   Stage stage(setting);
//   Actor& a = stage.enter("A");
//   const std::uint64_t token = stage.acquire(a);
//   stage.freeze(a);
//   …
//   Record record = stage.finish();
//
// A drill reads as a story, not as a ladder of ifs: what it cannot go on without throws Impossible.
// One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/address.h"
#include "drill/actor.h"
#include "drill/observer.h"
#include "drill/part.h"
#include "drill/proxy.h"
#include "drill/record.h"
#include "drill/target.h"
#include "drill/throwaway_pawld.h"

namespace pawl::drill {

// The drill cannot be carried out, which says nothing about the guard. kUnavailable, kBusy (someone
// else holds the lock), …
struct Impossible {
  Error error;
};
// The value of a result; Impossible is thrown where there is none.
template <class T>
T need(Result<T> result) {
  if (!result) throw Impossible{result.error()};
  return *std::move(result);
}
inline void need(const Result<void>& result) {
  if (!result) throw Impossible{result.error()};
}
// Someone pressed Ctrl-C.
struct Interrupted {};

struct Setting {
  std::string drill;                       // its name
  std::string program = "/proc/self/exe";  // pawl
  std::vector<client::Address>
      pawld;  // the user's; of a drill with a throw-away pawld it is not used
  Auth auth = {};
  TlsOptions tls = {};
  std::string lock;
  std::chrono::milliseconds ttl{2'000};
  // How long the lock is waited for when the drill begins, and then beyond what the leases explain.
  std::chrono::milliseconds patience{10'000};
  Target target;
  std::string mode;  // of the target's guard, for the record
  int stop = -1;     // a descriptor that can be read once the drill is to stop; -1: none
  std::function<void(const Line&)> tell = {};  // each line, as it happens
  // Called before a worker advances the fence to the token that it was granted. An error: it must
  // not, and the drill ends with it.
  std::function<std::optional<Error>(std::uint64_t token)> before_advance = {};
  // While something is waited for, several times a second: what, and how long already.
  std::function<void(std::string_view what, Moment waited)> wait = {};
};

enum class Through : std::uint8_t { kNothing, kProxy };

class Stage {
 public:
  explicit Stage(Setting setting);
  // Everything that was started has ended then.
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] const Setting& setting() const { return setting_; }
  [[nodiscard]] const Record& record() const { return record_; }
  [[nodiscard]] Moment now() const;

  // --- before the first actor --------------------------------------------------------------------

  // A pawld of the drill's own, instead of the user's.
  ThrowawayPawld& use_throwaway_pawld();

  // --- actors ------------------------------------------------------------------------------------

  // A worker that is ready. One behind a proxy has one of its own.
  Actor& enter(const std::string& name, Through through = Through::kNothing);
  // Asks for the lock, and waits until it is granted. The token.
  std::uint64_t acquire(Actor& actor);
  // Asks for it and goes on; granted() waits for it then.
  void queue(Actor& actor);
  std::uint64_t granted(Actor& actor);
  // Of several that have asked: who is granted it first.
  Actor& first_granted(const std::vector<Actor*>& actors);
  // The greatest token that it was granted; 0: none.
  [[nodiscard]] std::uint64_t token(const Actor& actor) const { return part_of(actor).token; }
  [[nodiscard]] bool believes(const Actor& actor) const { return part_of(actor).believes; }
  // Waits until it knows that it does not hold the lock.
  void knows_loss(Actor& actor);
  void release(Actor& actor);
  // What a new holder does before it reads; nothing where nobody guards.
  void advance(Actor& actor);

  // --- writes ------------------------------------------------------------------------------------

  // Sends a write under this token; answered() waits for what became of it. A frozen actor sends it
  // when it wakes. `value`: what is written; empty: something that no other write has.
  std::size_t send(Actor& actor, std::uint64_t token, Manner manner = Manner::kBlind,
                   std::string value = {});
  const Write& answered(std::size_t write);
  const Write& write(Actor& actor, std::uint64_t token, Manner manner = Manner::kBlind) {
    return answered(send(actor, token, manner));
  }

  // --- faults ------------------------------------------------------------------------------------

  void freeze(Actor& actor);
  void wake(Actor& actor);
  void kill(Actor& actor);
  // Started again after kill(), as a supervisor does; it remembers the token of its former life.
  void revive(Actor& actor);
  // A write of this actor's is held up on its way, until it arrives.
  void delay(Actor& actor);
  void arrive(Actor& actor);
  void cut(Actor& actor, Cut cut);  // of one behind a proxy
  void mend(Actor& actor);
  void kill_pawld();
  void start_pawld(Process::Clocks clocks = {});
  void back_up_pawld();
  // From the last backup, while it is killed.
  void restore_pawld();

  // --- the rest ----------------------------------------------------------------------------------

  void say(std::string_view who, std::string text);
  // Serves everything until the condition holds. Impossible when that takes longer than `limit`.
  void until(std::string_view what, std::chrono::milliseconds limit,
             const std::function<bool()>& holds);
  // Lets time pass, serving everything.
  void pass(std::chrono::milliseconds time);
  // A sixth of the TTL: the holder is at work for a moment. Without it all would happen at once,
  // and no picture show it.
  void beat() { pass(setting_.ttl / 6); }
  // How long a lease that nobody renews may take to pass on.
  [[nodiscard]] std::chrono::milliseconds handover() const;
  // Sets right what effects tell: `values` are those that are in effect.
  void settle(const std::vector<std::string>& values);
  // Ends the actors and the faults that are still open, and judges.
  Record finish();

 private:
  // An actor and what the record knows of it.
  struct Role {
    std::unique_ptr<Proxy> proxy;  // outlives the actor
    std::unique_ptr<Actor> actor;
    bool ready = false;
    bool waits = false;
    bool believes = false;
    std::uint64_t token = 0;
    std::uint64_t advanced_to = 0;
    std::optional<Error> trouble =
        {};  // why what was last asked of it will not come: not granted, failed, ended
  };

  [[nodiscard]] Role& part_of(const Actor& actor);
  [[nodiscard]] const Role& part_of(const Actor& actor) const;
  [[nodiscard]] const std::vector<client::Address>& pawld() const;
  [[nodiscard]] ActorOptions options_for(const Role& role, const std::string& name) const;
  void await_ready(Role& role, const std::string& name);
  // What is the user's own is fenced at each grant: writes to it may be judged only, and raise no
  // fence.
  void fence_on_grant(Actor& actor);

  // One wait for everything there is, not beyond `limit`.
  void turn(client::Instant limit);
  void hear(Role& role, const Telling& told);
  void hear(const wire::EventPush& event);
  void hear_grant(Role& role, const Telling& told);
  void hear_write(Role& role, const Telling& told);
  [[nodiscard]] std::string describe(const Write& write) const;
  void await_endings();
  void end_belief(Role& role, client::Instant at);
  Ownership& ownership(std::uint64_t token, const std::string& actor, Moment from);
  Fault& fault(FaultKind kind, const std::string& whom, std::string note = {});
  void end_fault(FaultKind kind, const std::string& whom);
  [[nodiscard]] Moment moment(client::Instant at) const;

  const Setting setting_;
  const client::Instant began_;
  Record record_;
  std::unique_ptr<ThrowawayPawld> throwaway_;
  std::vector<client::Address> throwaway_address_;
  Process::Clocks clocks_{};  // of the throw-away pawld, from ours
  std::unique_ptr<Observer> observer_;
  std::vector<std::unique_ptr<Role>> roles_;
};

}  // namespace pawl::drill
