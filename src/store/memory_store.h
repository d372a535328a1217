// A store in memory, for tests and for Pawl inside other people's tests. Durable at once, unless a
// test holds it back.
//
//   MemoryStore store(incarnation);
//   store.hold();  store.submit(batch, id, sink);  …  store.release_next();   // now sink.durable(id)
//
// It outlives a core that is "restarted" on it: load() may be called again after close() or
// crash().
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "store/store.h"

namespace pawl::store {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Incarnation incarnation) : incarnation_(incarnation) {}

  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  bool has_room() override { return room_; }
  Result<void> close() override;
  [[nodiscard]] std::optional<Space> space() const override { return space_; }
  [[nodiscard]] std::string_view kind() const override { return "memory"; }

  // From now on batches wait; each release_next() makes the oldest durable.
  void hold() { holding_ = true; }
  // False when none waits.
  bool release_next();
  // Makes all that wait durable, and later ones at once again.
  void release();
  [[nodiscard]] std::size_t held() const { return held_.size(); }

  // The process dies: what is held back never happened, its sinks hear nothing, and load() comes
  // next.
  void crash();
  void set_room(bool room) { room_ = room; }
  void set_space(const Space& space) { space_ = space; }
  // Every batch from now on fails.
  void fail(Error error) { failure_ = std::move(error); }

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& records() const {
    return records_;
  }

 private:
  struct Held {
    Batch batch;
    BatchId id;
    Sink* sink;
  };
  void commit(const Batch& batch, BatchId id, Sink& sink);

  const Incarnation incarnation_;
  std::map<std::string, std::string, std::less<>> records_;
  std::deque<Held> held_;
  std::optional<Error> failure_;
  std::uint64_t high_water_ = 0;  // Of all batches submitted: one that was lost may have been seen.
  std::uint64_t sequence_ = 0;
  bool loaded_before_ = false;
  bool clean_ = true;
  bool holding_ = false;
  bool room_ = true;
  std::optional<Space> space_;
};

}  // namespace pawl::store
