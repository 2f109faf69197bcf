// Drawn numbers are the host's to the byte, whatever the type, the first index and the place.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

using DrawsKernels = Kernels;

run::Drawing numbers(std::int64_t drawn) {
  return {.draw = {.seed = 90211, .stream = (std::uint64_t{3} << 40) + 17},
          .scale = 0.0433,
          .offset = 1,
          .drawn = drawn};
}

TEST_F(DrawsKernels, AreTheHostsToTheByte) {
  for (const DataType type : kTypes) {
    for (const std::int64_t count : {0, 1, 255, 2049, 300000}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{5}, std::int64_t{1} << 33}) {
        for (const std::int64_t drawn : {first, first + count / 2, first + count}) {
          Twins twins;
          const Slot to = twins.add(at_random(type, count, 1));
          twins.expect_same(
              [&](const Memory& m) {
                return run::DrawInto{.type = type,
                                     .count = count,
                                     .first = first,
                                     .numbers = numbers(drawn),
                                     .to = m.at(to)};
              },
              {});
        }
      }
    }
  }
}

}  // namespace
}  // namespace capo::gpu
