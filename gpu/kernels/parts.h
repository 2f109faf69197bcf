// Arithmetic that host and device share. Compilers of the host alone read this file too.

#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CAPO_ON_BOTH __host__ __device__
#else
#define CAPO_ON_BOTH
#endif

namespace capo::gpu {

/// Parts of a size that cover a whole.
[[nodiscard]] CAPO_ON_BOTH constexpr std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

}  // namespace capo::gpu
