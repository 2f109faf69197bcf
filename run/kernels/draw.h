// Random numbers by place: a seed, a stream and an index decide a number, and nothing else does, so
// that every engine makes the same ones to the bit, in whatever order and on however many threads.
//
// A draw mixes (seed, stream, index) with the finaliser of splitmix64 (Steele, Lea, Flood 2014).
// All of it is exact but for two roundings, to fp32 and to the type that is stored, which are the
// same everywhere. The functions also compile for a device. Tested by stored_test.cpp and, engine
// against engine, by tests/gpu/draws_test.cpp.

#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CAPO_HOST_DEVICE __host__ __device__
#else
#define CAPO_HOST_DEVICE
#endif

namespace capo::run {

struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< says what is drawn: each tensor of each step has its own

  [[nodiscard]] CAPO_HOST_DEVICE constexpr std::uint64_t bits(std::uint64_t index) const {
    return mixed(mixed(mixed(seed + kStep) ^ (stream + kStep)) ^ (index + kStep));
  }
  /// A multiple of 2^-24 in [0, 1).
  [[nodiscard]] CAPO_HOST_DEVICE constexpr double unit(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 40) * 0x1p-24;
  }
  /// A number in [-1, 1): 2 * unit(index) - 1, which is exact either way.
  [[nodiscard]] CAPO_HOST_DEVICE constexpr double around_zero(std::uint64_t index) const {
    return static_cast<double>(static_cast<std::int64_t>(bits(index) >> 40) - (1 << 23)) * 0x1p-23;
  }
  /// A whole number in [0, count), for a count from 1 to 2^32.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index, std::uint64_t count) const {
    return ((bits(index) >> 32) * count) >> 32;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  CAPO_HOST_DEVICE static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
};

/// The numbers of a tensor: `offset` and up to `scale` around it.
struct Drawing {
  Draw draw;
  double scale = 1;
  float offset = 0;
  std::int64_t drawn = 0;  ///< those from this index on are NaN

  /// The number at an index below `drawn`.
  [[nodiscard]] CAPO_HOST_DEVICE constexpr float at(std::int64_t index) const {
    return static_cast<float>(scale * draw.around_zero(static_cast<std::uint64_t>(index))) + offset;
  }
};

}  // namespace capo::run
