// Numbers that a seed and a place decide, and nothing else: the same on every machine, in whatever
// order they are asked for.
//
// A mixing function over (seed, stream, index), after the finaliser of splitmix64 (Steele, Lea,
// Flood 2014). Tested by tests/run/setup/draw_test.cpp.

#pragma once

#include <cstdint>

namespace capo::run {

struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< what is drawn: one number for each tensor and step

  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const {
    return mixed(mixed(mixed(seed + kStep) ^ (stream + kStep)) ^ (index + kStep));
  }
  /// In [0, 1), a multiple of 2^-24.
  [[nodiscard]] constexpr double unit(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 40) * 0x1p-24;
  }
  /// In [-1, 1).
  [[nodiscard]] constexpr double around_zero(std::uint64_t index) const {
    return 2 * unit(index) - 1;
  }
  /// In [0, count), count from 1 to 2^32.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index, std::uint64_t count) const {
    return ((bits(index) >> 32) * count) >> 32;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
};

}  // namespace capo::run
