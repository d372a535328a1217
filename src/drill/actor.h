// One worker of a drill, seen from the drill: a real process that can be told what to do, frozen,
// woken and killed.
//
//   auto a = Actor::start({.program = "/proc/self/exe", .name = "A", .pawld = "127.0.0.1:7295", .target = target});
//   (*a)->acquire("orders", 2s, 60s);
//   …poll its interest(), turn()…, then:  for (const Telling& told : (*a)->take_tellings()) …
//
// Whoever has actors ignores SIGPIPE: one that has died must not end the drill. Orders are only
// sent here; what comes of them is told. A frozen one does what it was ordered once it is woken.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drill/part.h"
#include "drill/process.h"
#include "drill/target.h"
#include "pawl/client.h"

namespace pawl::drill {

struct ActorOptions {
  std::string program;  // pawl itself, which knows the hidden verb drill-worker
  std::string name;
  std::string pawld;  // addresses, as libpawl takes them
  Auth auth = {};
  TlsOptions tls = {};
  Target target;
};

// What a worker told. Which fields are set depends on the kind.
struct Telling {
  enum class Kind : std::uint8_t {
    kReady,       //
    kFailed,      // detail: it cannot do its part
    kGranted,     // token
    kNotGranted,  // code, detail
    kReleased,    //
    kAdvanced,    // outcome
    kWritten,     // id, sent, outcome
    kWithheld,    // id, sent, detail
    kLease,       // token, state, detail
    kEnded,       // the process is gone, or has closed its pipe
  };
  Kind kind = Kind::kEnded;
  client::Instant at = {};  // on the worker's clock, which is ours
  client::Instant sent = {};
  std::uint64_t id = 0;
  std::uint64_t token = 0;
  Code code = Code::kUnavailable;
  LeaseState state = LeaseState::kHeld;
  guard::Outcome outcome = {};
  std::string detail = {};
};

enum class Manner : std::uint8_t {
  kBlind,  // It had asked its lease before, and was held up in between: what every program can do.
  kAsks,   // It asks first, and does not write when the lease is over.
};

class Actor final : public Part {
 public:
  // Returns at once; kReady is told when it is. From the thread that lives longest.
  static Result<std::unique_ptr<Actor>> start(const ActorOptions& options);
  // Lets it end by itself, which gives back what it holds; kills it when it is frozen, or takes
  // longer than two seconds.
  ~Actor() override;

  [[nodiscard]] const std::string& name() const { return name_; }

  void acquire(const std::string& lock, std::chrono::milliseconds ttl,
               std::chrono::milliseconds wait);
  void release();
  void advance(std::uint64_t token, std::chrono::milliseconds wait);
  void write(std::uint64_t id, std::uint64_t token, const std::string& value, Manner manner);

  void freeze();
  void wake();
  void kill();
  // Becomes what `other` is: the same worker, started again. `other` is nobody then.
  void take_over(Actor& other);
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool lives() const { return lives_; }

  [[nodiscard]] std::vector<Telling> take_tellings() { return std::exchange(tellings_, {}); }

  [[nodiscard]] std::vector<pollfd> interest() const override;
  void turn(std::span<const pollfd> ready) override;

 private:
  struct Reader;
  Actor(std::string name, Process process, UniqueFd orders, UniqueFd tells);
  void order(const std::string& line);
  void end();

  const std::string name_;
  Process process_;
  UniqueFd orders_;  // its stdin
  UniqueFd tells_;   // its stdout
  std::unique_ptr<Reader> reader_;
  std::vector<Telling> tellings_;
  bool frozen_ = false;
  bool lives_ = true;
};

}  // namespace pawl::drill
