// Memory of the device for codes, which benchmarks of them share.

#pragma once

#include "bench/gpu/timing.h"
#include "run/kernels/coded_product.h"

#include <cstddef>
#include <cstdint>

namespace capo::bench {

/// Memory for codes of vectors along a depth.
class CodesBuffer {
 public:
  CodesBuffer(run::Scaling scaling, std::int64_t groups, std::int64_t count, std::int64_t depth,
              std::int64_t width)
      : codes_(static_cast<std::size_t>(groups * count * depth)),
        scales_(
            static_cast<std::size_t>(groups * run::bytes_of_scales(scaling, count, depth, width))) {
  }
  [[nodiscard]] run::Codes view() const {
    return {.codes = reinterpret_cast<std::uint8_t*>(codes_.at()), .scales = scales_.at()};
  }

 private:
  Buffer codes_;
  Buffer scales_;
};

inline std::size_t bytes_of(std::int64_t elements, std::int64_t element_bytes) {
  return static_cast<std::size_t>(elements * element_bytes);
}

}  // namespace capo::bench
