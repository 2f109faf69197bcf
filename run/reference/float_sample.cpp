#include "run/reference/float_sample.h"

#include "core/base/index.h"
#include "run/kernels/stored.h"

#include <algorithm>
#include <numeric>

namespace capo::run {

std::vector<std::int64_t> FloatSample::of(std::int64_t places, std::uint64_t stream) const {
  std::vector<std::int64_t> some(as_index(std::min(places, count)));
  std::iota(some.begin(), some.end(), std::int64_t{0});
  if (places <= count) return some;
  const Draw draw{.seed = seed, .stream = stream};
  for (std::int64_t& part : some) {
    const std::int64_t from = part * places / count;
    const std::int64_t end = (part + 1) * places / count;
    part = from + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(part),
                                                       static_cast<std::uint64_t>(end - from)));
  }
  return some;
}

}  // namespace capo::run
