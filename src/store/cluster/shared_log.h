// What a cluster store needs of the consensus engine below it: one value, the head, and a log of
// numbered entries. etcd has both as keys; the simulator has a model of it.
//
//   log.listen(&store);
//   log.write({.expected = head_now, .head = head_next, .entry = 7, .bytes = batch});
//   …later: listener.written(answer), once
//
// Writes and reads take effect at one moment each, between the call and its answer; but a write
// whose outcome is unknown may take effect after that answer, too. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::store::cluster {

class SharedLog {
 public:
  // All of it happens, or nothing.
  struct Write {
    std::optional<std::string> expected;  // The head must be this, as a whole; "": must not exist.
    std::string head;                     // What it becomes.
    std::uint64_t entry = 0;              // The number of an entry to add; 0: none.
    std::string bytes = {};               // That entry.
  };
  struct WriteAnswer {
    enum class Outcome : std::uint8_t {
      kApplied,
      kRefused,  // The head was not as expected; this send changed nothing.
      kUnknown,  // It may have been applied, or may be later. Only the same write again can tell.
    };
    Outcome outcome = Outcome::kUnknown;
    std::string found = {};  // kRefused: the head as it is; "": there is none.
  };
  struct ReadAnswer {
    bool known = false;
    std::string head = {};                  // "": there is none.
    std::vector<std::string> entries = {};  // In order, from the number that was asked for.
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void written(const WriteAnswer& answer) = 0;
    virtual void read(const ReadAnswer& answer) = 0;
  };

  virtual ~SharedLog() = default;
  // Before the first call.
  virtual void listen(Listener* listener) = 0;
  // Each is answered once, and not before it returns. One write and one read at a time.
  virtual void write(const Write& write) = 0;
  // The head, and the entries from number `from` on, as they are together at one moment after this
  // call. Perhaps not all of those entries.
  virtual void read(std::uint64_t from) = 0;
  [[nodiscard]] virtual std::string_view kind() const = 0;
};

}  // namespace pawl::store::cluster
