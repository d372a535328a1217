// A store in memory, for tests and for the in-process Pawl of users' tests. Batches are durable at
// once, unless a test holds them back:
//
//   MemoryStore store(incarnation);
//   store.hold();
//   store.submit(batch, id, sink);
//   store.release_next();            // completes it
//   store.pump(sink);                // calls sink.durable(id)
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
  void pump(Sink& sink) override;
  void wake_with(Waker* waker) override { waker_ = waker; }
  bool has_room() override { return room_; }
  Result<void> close() override;
  [[nodiscard]] std::optional<Space> space() const override { return space_; }
  [[nodiscard]] BatchLimits batch_limits() const override { return limits_; }
  [[nodiscard]] bool ready() const override { return !one_at_a_time_ || held_.empty(); }
  [[nodiscard]] bool is_shared() const override { return true; }  // A test may say so.
  [[nodiscard]] bool is_active() const override { return !deposed_by_.has_value(); }
  [[nodiscard]] Nanos may_answer_until() const override { return may_answer_until_; }
  [[nodiscard]] std::optional<ClusterView> cluster() const override { return cluster_; }
  void hand_over() override { depose({}); }
  [[nodiscard]] std::string_view kind() const override { return "memory"; }

  // Holds back every batch submitted from now on; each release_next() completes the oldest, which
  // the next pump() reports.
  void hold() { holding_ = true; }
  // Returns false if no batch is held back.
  bool release_next();
  // Completes all batches that are held back, and ends hold().
  void release();
  // The number of batches that were not released yet.
  [[nodiscard]] std::size_t held() const { return held_.size() - released_; }

  // Simulates the death of the process: batches that pump() has not reported are lost without a
  // call of their sinks. Call load() next.
  void crash();
  // What has_room() and space() return from now on.
  void set_room(bool room) { room_ = room; }
  void set_space(const Space& space) { space_ = space; }
  // As if other processes could take the store: answers may leave until this moment.
  void set_may_answer_until(Nanos until) { may_answer_until_ = until; }
  // Another process is active: batches that pump() has not reported are lost, and the next pump()
  // says so. Until elect().
  void depose(Active by);
  void elect();
  // What cluster() says from now on.
  void set_cluster(ClusterView cluster) { cluster_ = std::move(cluster); }
  // Batches may hold so much; one is under way at a time.
  void limit_batches(BatchLimits limits) {
    limits_ = limits;
    one_at_a_time_ = true;
  }
  // The largest batch submitted.
  [[nodiscard]] std::size_t largest_batch() const { return largest_batch_; }
  // Every batch from now on fails with `error`.
  void fail(Error error) { failure_ = std::move(error); }

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& records() const {
    return records_;
  }

 private:
  struct Held {
    Batch batch;
    BatchId id;
  };
  void commit(const Batch& batch, BatchId id, Sink& sink);

  const Incarnation incarnation_;
  std::map<std::string, std::string, std::less<>> records_;
  std::deque<Held> held_;
  // The first of these that are complete and not reported yet.
  std::size_t released_ = 0;
  Waker* waker_ = nullptr;
  std::optional<Error> failure_;
  // Of all batches submitted, lost ones included: their numbers may have been seen.
  std::uint64_t high_water_ = 0;
  std::uint64_t sequence_ = 0;
  bool loaded_before_ = false;
  bool clean_ = true;
  bool holding_ = false;
  bool room_ = true;
  std::optional<Space> space_;
  Nanos may_answer_until_ = Nanos::max();
  std::optional<Active> deposed_by_;
  std::optional<ClusterView> cluster_;
  bool deposed_reported_ = false;
  std::uint64_t epoch_ = 0;
  BatchLimits limits_;
  bool one_at_a_time_ = false;
  std::size_t largest_batch_ = 0;
};

}  // namespace pawl::store
