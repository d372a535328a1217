#include "server/commits.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::server {

Commits::Commits(store::Store& store, core::Core& core, ServiceClock& clock, Observers& observers,
                 ServiceLog& service_log, Telemetry& telemetry, Log& log,
                 std::function<void(const Error&)> on_fatal)
    : store_(store),
      core_(core),
      clock_(clock),
      observers_(observers),
      service_log_(service_log),
      telemetry_(telemetry),
      log_(log),
      on_fatal_(std::move(on_fatal)) {}

bool Commits::submit() {
  if (!store_.ready()) return false;
  const BatchId id = core_.take_batch(batch_);
  core::Output& output = core_.output();
  if (id.value != 0) {
    PAWL_ASSERT(durable_ < id);
    observers_.events().append(id, output);
    telemetry_.count(output);
    ++telemetry_.batches;
    telemetry_.batch_size.observe(static_cast<std::int64_t>(batch_.operations()));
  }
  if (id.value == 0 && !output.events.empty()) {
    observers_.events().append_unstored(in_flight_.empty() ? durable_ : in_flight_.back().batch,
                                        output);
    if (in_flight_.empty()) observers_.publish(durable_);
  }
  output.clear();
  if (id.value == 0) return false;
  in_flight_.push_back({id, clock_.uptime_now()});
  store_.submit(batch_, id, *this);
  return durable_ == id;
}

void Commits::provide_state() {
  if (failed_ || !in_flight_.empty() || !store_.wants_state()) return;
  Batch state;
  core_.write_state(state);
  store_.take_state(state);
}

void Commits::forget_batches() {
  in_flight_.clear();
  durable_ = BatchId{};
}

void Commits::durable(BatchId batch) {
  if (failed_) return;
  PAWL_ASSERT(!in_flight_.empty() && in_flight_.front().batch == batch);
  // Read after the sync: a grant's TTL begins when it is durable, never at the turn's `now`.
  const Now synced = clock_.now();
  service_log_.check_pause(clock_, ServiceLog::Doing::kCommitting);
  core_.durable(batch, synced);
  telemetry_.commit.observe(clock_.uptime() - in_flight_.front().at);
  in_flight_.erase(in_flight_.begin());
  durable_ = batch;
  observers_.publish(batch);
}

void Commits::failed(BatchId batch, const Error& failure) {
  if (failed_) return;
  if (PAWL_MUTANT(failed_commit_goes_on)) return durable(batch);
  fail(fmt::format("the store failed at batch {}: {}", batch.value, failure.detail), failure);
}

Result<void> Commits::followed(std::string_view operations) {
  while (!operations.empty()) {
    const auto operation = take_operation(operations);
    if (!operation) return operation.error();
    if (!operation->put) {
      core_.unload(operation->key);
    } else if (auto loaded = core_.load(operation->key, operation->value); !loaded) {
      return loaded;
    }
  }
  return {};
}

void Commits::fail(const std::string& text, const Error& error) {
  failed_ = true;
  log_.error(text, {{"event", "store_failed"}});
  on_fatal_(error);
}

}  // namespace pawl::server
