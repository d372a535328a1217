// Records of a store or backup into a core, which knows what they mean and whether they contradict
// each other.
#pragma once

#include "core/core.h"
#include "store/store.h"

namespace pawl::pawld {

class IntoCore final : public store::Visitor {
 public:
  void expect(std::uint64_t count) override { core.expect(count); }
  Result<void> record(std::string_view key, std::string_view value) override {
    ++records;
    return core.load(key, value);
  }

  core::Core core;
  std::uint64_t records = 0;
};

}  // namespace pawl::pawld
