// An orderly end of the role of an active pawld: HANDOVER and SIGTERM ask for it. From then on no
// command is served: each stays where it was read. When what was served before is durable and
// answered, the store gives the role away, and the engine stands by.
#pragma once

#include <cstdint>

namespace pawl::server {

class Handover {
 public:
  void order() {
    if (step_ == Step::kNone) step_ = Step::kDraining;
  }
  // From order() until the role is given away.
  [[nodiscard]] bool under_way() const { return step_ != Step::kNone; }
  // Whether the store is still to be told.
  [[nodiscard]] bool draining() const { return step_ == Step::kDraining; }
  void told_store() { step_ = Step::kGiving; }
  void done() { step_ = Step::kNone; }

 private:
  enum class Step : std::uint8_t { kNone, kDraining, kGiving };
  Step step_ = Step::kNone;
};

}  // namespace pawl::server
