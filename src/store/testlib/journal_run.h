// What the journal's tests share: a sink that records outcomes, a visitor that collects records,
// and one run of a journal from open to crash or close.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "store/journal/journal.h"
#include "store/testlib/simulated_disk.h"

namespace pawl::store::journal {

// Holds a few hundred batches.
inline constexpr std::uint64_t kTestSegmentBytes = std::uint64_t{1} << 20;

using State = std::map<std::string, std::string>;

inline const std::string kDirectory = "data";

class CollectingVisitor final : public Visitor {
 public:
  Result<void> record(std::string_view key, std::string_view value) override {
    EXPECT_TRUE(state.emplace(key, value).second) << "visited twice: " << key;
    return {};
  }
  State state;
};

class RecordingSink final : public Sink {
 public:
  void durable(BatchId batch) override { last_durable = batch.value; }
  void failed(BatchId /*batch*/, const Error& error) override { failure = error; }
  std::uint64_t last_durable = 0;
  std::optional<Error> failure;
};

// Applies the operations of `batch` to `state`.
inline void apply_to(const Batch& batch, State& state) {
  for (std::string_view rest = batch.bytes(); !rest.empty();) {
    const auto operation = take_operation(rest);
    ASSERT_TRUE(operation);
    if (operation->put) {
      state[std::string(operation->key)] = operation->value;
    } else {
      state.erase(std::string(operation->key));
    }
  }
}

// One run of a journal, from open() to a crash or to close(). If open() or load() fails, ok() is
// false and `error` is set.
struct JournalRun {
  explicit JournalRun(Files& files, const Settings& settings = small(), std::uint64_t seed = 1) {
    SeededRandom random(seed);
    auto opened = Journal::open(files, kDirectory, settings, random);
    if (!opened) {
      error = opened.error();
      return;
    }
    auto answer = (*opened)->load(loaded_state);
    if (!answer) {
      error = answer.error();
      return;
    }
    loaded = *answer;
    journal = std::move(*opened);
  }

  static Settings small() {
    Settings settings;
    settings.segment_bytes = kTestSegmentBytes;
    settings.spare_segments = 1;
    settings.checkpoint_after = 2;
    settings.space_reserve = 0;
    return settings;
  }

  [[nodiscard]] bool ok() const { return journal != nullptr; }
  [[nodiscard]] const State& state() const { return loaded_state.state; }
  // Returns whether the batch was acknowledged.
  bool submit(const Batch& batch) {
    const BatchId id{answers.last_durable + 1};
    journal->submit(batch, id, answers);
    return answers.last_durable == id.value;
  }
  bool put(std::string_view key, std::string_view value, std::uint64_t covered = 0) {
    Batch batch;
    batch.put(key, value);
    batch.cover(covered);
    return submit(batch);
  }
  // Does all background work that there is.
  void work() {
    while (journal->background_step()) {
    }
  }

  CollectingVisitor loaded_state;
  Loaded loaded;
  RecordingSink answers;
  std::optional<Error> error;
  std::unique_ptr<Journal> journal;
};

}  // namespace pawl::store::journal
