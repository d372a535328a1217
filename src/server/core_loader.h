// Loads the records of a store or of a backup into a core.
//
//   core::Core core;
//   server::CoreLoader loader(core);
//   store.load(loader);
//   core.loaded(high_water, now);
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/core.h"
#include "store/store.h"

namespace pawl::server {

class CoreLoader final : public store::Visitor {
 public:
  // `go_on` is called after every 1,000 records: few enough that a connection is answered -LOADING
  // within milliseconds meanwhile. If it returns false the load ends with kUnavailable.
  explicit CoreLoader(core::Core& core, std::function<bool()> go_on = {})
      : core_(core), go_on_(std::move(go_on)) {}

  void expect(std::uint64_t records) override { core_.expect(records); }
  Result<void> record(std::string_view key, std::string_view value) override {
    if (++records_ % kRecordsPerCall == 0 && go_on_ && !go_on_())
      return Error{Code::kUnavailable, "loading was stopped; nothing was changed"};
    return core_.load(key, value);
  }

  // The number of records so far.
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  static constexpr std::uint64_t kRecordsPerCall = 1000;

  core::Core& core_;
  const std::function<bool()> go_on_;
  std::uint64_t records_ = 0;
};

}  // namespace pawl::server
