// What a cluster store needs of the consensus engine below it: one value, the head, and a log of
// numbered entries. etcd has both as keys; the simulator has a model of it.
//
//   log.listen(&store);
//   log.write({.expected = head_now, .head = head_next, .entry = 7, .bytes = entry});
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

#include "pawl/result.h"
#include "store/store.h"

namespace pawl::store::cluster {

class SharedLog {
 public:
  // All of it happens, or nothing.
  struct Write {
    std::optional<std::string> expected;  // The head must be this, as a whole; "": must not exist.
    std::string head;                     // What it becomes.
    std::uint64_t entry = 0;              // The number of an entry to add; 0: none.
    std::string bytes = {};               // That entry.
    std::uint64_t delete_before = 0;      // Entries with lower numbers are deleted; 0: none.
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
  struct Read {
    std::uint64_t from = 1;  // The number of the first entry.
    std::uint64_t most = 0;  // Entries.
  };
  struct NumberedEntry {
    std::uint64_t number = 0;
    std::string bytes;
  };
  struct ReadAnswer {
    bool known = false;
    std::string head = {};                    // "": there is none.
    std::vector<NumberedEntry> entries = {};  // In order. Those that are deleted are left out.
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void written(const WriteAnswer& answer) = 0;
    virtual void read(const ReadAnswer& answer) = 0;
    // The log cannot be used any more, and an operator must say what to do: it was restored from a
    // copy, or this process may not use it. No answer follows.
    virtual void failed(const Error& error) = 0;
  };

  virtual ~SharedLog() = default;
  // Before the first call.
  virtual void listen(Listener* listener) = 0;
  // Each is answered once, and not before it returns. One write and one read at a time.
  virtual void write(const Write& write) = 0;
  // The head, and the entries [from, from + most), as they are together at one moment after this
  // call.
  virtual void read(const Read& read) = 0;
  // False when space is short.
  [[nodiscard]] virtual bool has_room() const { return true; }
  // For people.
  [[nodiscard]] virtual std::optional<ClusterView> view() const { return std::nullopt; }
  [[nodiscard]] virtual std::string_view kind() const = 0;
};

// What a log that was restored under its users is failed() with.
[[nodiscard]] Error log_went_back();

}  // namespace pawl::store::cluster
