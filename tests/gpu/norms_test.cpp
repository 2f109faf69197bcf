// Layer norm and its gradients on the device, against the host's.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};
constexpr std::array kShapes{Shape{.rows = 1, .columns = 1},     Shape{.rows = 3, .columns = 7},
                             Shape{.rows = 70, .columns = 65},   Shape{.rows = 33, .columns = 256},
                             Shape{.rows = 9, .columns = 2051},  Shape{.rows = 5, .columns = 4096},
                             Shape{.rows = 200, .columns = 776}, Shape{.rows = 0, .columns = 40}};
constexpr float kEpsilon = 1e-5F;

// Away from zero; not far, or fp32 itself would know the mean to less than the tolerance.
Tensor shifted(DataType type, std::int64_t count, std::uint32_t seed) {
  Tensor tensor = at_random(type, count, seed);
  for (std::int64_t i = 0; i < count; ++i) tensor.set(i, tensor.value(i) + 1);
  return tensor;
}

using Norms = Kernels;

TEST_F(Norms, Forward) {
  for (const DataType type : kTypes) {
    for (const auto& [rows, columns] : kShapes) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      Twins twins;
      const Slot x = twins.add(shifted(type, rows * columns, 1));
      const Slot weight = twins.add(at_random(type, columns, 2), 4);
      const Slot bias = twins.add(at_random(type, columns, 3));
      const Slot y = twins.add(at_random(type, rows * columns, 4));
      twins.expect_same(
          [&, rows = rows, columns = columns](const Memory& m) {
            return run::LayerNorm{.type = type,
                                  .rows = rows,
                                  .columns = columns,
                                  .epsilon = kEpsilon,
                                  .x = m.at(x),
                                  .weight = m.at(weight),
                                  .bias = m.at(bias),
                                  .y = m.at(y)};
          },
          {all_of(y)});
    }
  }
}

TEST_F(Norms, GradientAlsoInPlace) {
  for (const DataType type : kTypes) {
    for (const auto& [rows, columns] : kShapes) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      // The gradient of a row of one column is zero but for rounding.
      if (columns == 1) continue;
      Twins twins;
      const Slot x = twins.add(shifted(type, rows * columns, 1));
      const Slot weight = twins.add(at_random(type, columns, 2));
      const Slot dy = twins.add(at_random(type, rows * columns, 3));
      const Slot dx = twins.add(at_random(type, rows * columns, 4));
      for (const Slot& to : {dx, dy}) {
        twins.expect_same(
            [&, rows = rows, columns = columns](const Memory& m) {
              return run::LayerNormGradient{.type = type,
                                            .rows = rows,
                                            .columns = columns,
                                            .epsilon = kEpsilon,
                                            .x = m.at(x),
                                            .weight = m.at(weight),
                                            .dy = m.at(dy),
                                            .dx = m.at(to)};
            },
            {all_of(to)});
      }
    }
  }
}

TEST_F(Norms, GradientsOfWeightAndBias) {
  for (const DataType type : kTypes) {
    for (const DataType gradient_type : kTypes) {
      for (const auto& [rows, columns] : kShapes) {
        if (columns == 1) continue;
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
        Twins twins;
        const Slot x = twins.add(shifted(type, rows * columns, 1));
        const Slot dy = twins.add(at_random(type, rows * columns, 2));
        const Slot dweight = twins.add(at_random(gradient_type, columns, 3));
        const Slot dbias = twins.add(at_random(gradient_type, columns, 4));
        for (const Write write : {Write::Overwrite, Write::Add}) {
          twins.expect_same(
              [&, rows = rows, columns = columns](const Memory& m) {
                return run::LayerNormWeightGradient{.type = type,
                                                    .gradient_type = gradient_type,
                                                    .write = write,
                                                    .rows = rows,
                                                    .columns = columns,
                                                    .epsilon = kEpsilon,
                                                    .x = m.at(x),
                                                    .dy = m.at(dy),
                                                    .dweight = m.at(dweight),
                                                    .dbias = m.at(dbias)};
              },
              {all_of(dweight), all_of(dbias)});
        }
      }
    }
  }
}

}  // namespace
}  // namespace capo::gpu
