// What a store may hold, well-formed or not: the core refuses it, or holds together with it. And
// whatever is accepted as a record is exactly what would be written for it, so nothing is read in
// two ways.
#include <map>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/limits.h"
#include "core/core.h"
#include "core/records.h"
#include "core/testlib/invariants.h"
#include "tests/fuzz/script.h"

namespace pawl::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr WaiterId kAsker{1};
using Records = std::map<std::string, std::string>;

// Keys are mostly those of leases, values are the input's own bytes.
Records records_of(Script& script) {
  Records records;
  while (!script.done() && records.size() < 16) {
    const std::uint8_t kind = script.byte();
    std::string key = kind % 8 == 0   ? std::string(core::kLastTokenKey)
                      : kind % 8 == 1 ? std::string(script.bytes(script.below(12)))
                                      : core::lease_key(Token{kind});
    const std::size_t size = script.word() % 1024;
    records.insert_or_assign(std::move(key), std::string(script.bytes(size)));
  }
  return records;
}

void check_one(std::string_view key, std::string_view value) {
  PAWL_ASSERT(!core::describe(key, value).empty());
  const auto record = core::decode_lease(key, value);
  if (!record) return;
  std::string again;
  core::encode(*record, again);
  PAWL_ASSERT(again == value && core::lease_key(record->token) == key);
  PAWL_ASSERT(core::decode_meta(record->meta).size() <= limits::kMetaPairs);
}

void check(const core::Core& core, Now now) {
  PAWL_ASSERT(core::check_state(core::snapshot(core, now)).empty());
}

// It was accepted, so it must be able to live: everything in it can be read, asked for, broken and
// waited out.
void live(core::Core& core, Now now) {
  check(core, now);
  const core::LocksPage page = core.list("", 0, 100, now);
  for (const core::LockView& view : page.locks) {
    AcquireSpec spec;
    spec.locks.push_back(view.lock);
    spec.terms.ttl = 100ms;
    spec.wait = 1h;
    core.apply(core::Acquire{kAsker, spec, LeaseId{1, view.token.value_or(Token{}).value}}, now);
    core.apply(core::Cancel{kAsker}, now);
    if (view.token) core.apply(core::Break{kAsker, view.lock, *view.token, false, "why not"}, now);
    check(core, now);
  }
  Batch batch;
  if (const BatchId id = core.take_batch(batch); id.value != 0) core.durable(id, now);
  now.tick += std::chrono::hours(24 * 400);
  core.tick(now);
  now.tick += limits::kDelayMax;  // Those that close.
  core.tick(now);
  core.output().clear();
  check(core, now);
  PAWL_ASSERT(core.totals().leases == 0 && core.totals().locks == 0);
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl;
  fuzz::Script script({reinterpret_cast<const char*>(data), size});
  const Token high_water{script.word()};
  const auto records = fuzz::records_of(script);
  core::Core core;
  bool accepted = true;
  for (const auto& [key, value] : records) {
    fuzz::check_one(key, value);
    accepted = accepted && core.load(key, value);
  }
  const Now now{Tick(std::chrono::seconds(1)), UnixMs{1'700'000'000'000}};
  if (accepted && core.loaded(high_water, now)) fuzz::live(core, now);
  return 0;
}
