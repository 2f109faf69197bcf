// Numbers by chance, the same with every compiler and library (splitmix64, Steele et al.).

#pragma once

#include <cstddef>
#include <cstdint>

namespace capo::optimise {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t draw() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// From 0, less than `most`, which is not 0.
  std::uint32_t below(std::size_t most) { return static_cast<std::uint32_t>(draw() % most); }
  /// From 0, less than 1.
  double share() { return static_cast<double>(draw() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace capo::optimise
