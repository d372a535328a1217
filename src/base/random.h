// The source of random bits: the kernel in production, a seed in tests and simulation.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace pawl {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  LeaseId lease_id() { return LeaseId{next(), next()}; }
  // Uniform in [0, bound); bound > 0. The bias of the modulus is below 2^-40 for every bound that
  // Pawl uses.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
};

// getrandom(2), read in blocks. A lease id must be unguessable, and a system call for each would
// cost more than the grant itself.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;

 private:
  std::uint64_t pool_[64] = {};
  unsigned left_ = 0;
};

// splitmix64: the same seed gives the same sequence on every machine. Not for secrets.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace pawl
