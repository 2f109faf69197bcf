// Biases of groups of rows and their gradients on the device, against the host's.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

constexpr std::array<std::int64_t, 5> kColumns{1, 13, 64, 328, 2304};

enum class Scaled : std::uint8_t { No, Yes };
constexpr std::array kScaled{Scaled::No, Scaled::Yes};

// Groups of which one is empty; what lies behind their rows is NaN.
struct Problem {
  Problem(DataType the_type, DataType gradient_type, std::int64_t the_columns)
      : type(the_type), columns(the_columns) {
    Tensor rows_of_y = at_random(type, kCount * columns, 1);
    rows_of_y.spoil_from(kUsed * columns);
    y = twins.add(rows_of_y);
    scales = twins.add(at_random(DataType::Fp32, kCount, 2));
    dscales = twins.add(at_random(DataType::Fp32, kCount, 3));
    for (std::uint32_t group = 0; group < 4; ++group) {
      // Not all at multiples of 16 bytes.
      biases.push_back(twins.add(at_random(type, columns, 4 + group), group * 4));
      gradients.push_back(twins.add(at_random(gradient_type, columns, 8 + group)));
    }
    bias_table = twins.add_table(biases);
    gradient_table = twins.add_table(gradients);
    sizes = twins.add_numbers(Sizes{40, 0, 3, 70});
  }
  [[nodiscard]] run::Rows rows(const Memory& m) const {
    return {.count = kCount, .groups = 4, .sizes = m.as<std::int64_t>(sizes)};
  }
  [[nodiscard]] const float* scales_if(Scaled scaled, const Memory& m) const {
    return scaled == Scaled::Yes ? m.as<float>(scales) : nullptr;
  }

  static constexpr std::int64_t kCount = 120;
  static constexpr std::int64_t kUsed = 113;
  DataType type;
  std::int64_t columns;
  Twins twins;
  Slot y, scales, dscales, bias_table, gradient_table, sizes;
  std::vector<Slot> biases;
  std::vector<Slot> gradients;
};

using Biases = Kernels;

TEST_F(Biases, Add) {
  for (const DataType type : kTypes) {
    for (const std::int64_t columns : kColumns) {
      for (const Scaled scaled : kScaled) {
        Problem p(type, type, columns);
        p.twins.expect_same(
            [&](const Memory& m) {
              return run::BiasAdd{.type = type,
                                  .rows = p.rows(m),
                                  .columns = columns,
                                  .bias = m.as<void*>(p.bias_table),
                                  .scales = p.scales_if(scaled, m),
                                  .y = m.at(p.y)};
            },
            {first_of(p.y, Problem::kUsed * columns)});
      }
    }
  }
}

TEST_F(Biases, Gradient) {
  for (const DataType type : kTypes) {
    for (const DataType gradient_type : kTypes) {
      for (const std::int64_t columns : kColumns) {
        for (const Write write : {Write::Overwrite, Write::Add}) {
          const Scaled scaled = write == Write::Add ? Scaled::Yes : Scaled::No;
          Problem p(type, gradient_type, columns);
          std::vector<Part> written;
          for (const Slot& gradient : p.gradients) written.push_back(all_of(gradient));
          p.twins.expect_same(
              [&](const Memory& m) {
                return run::BiasGradient{.type = type,
                                         .gradient_type = gradient_type,
                                         .write = write,
                                         .rows = p.rows(m),
                                         .columns = columns,
                                         .dy = m.at(p.y),
                                         .scales = p.scales_if(scaled, m),
                                         .dbias = m.as<void*>(p.gradient_table)};
              },
              written);
        }
      }
    }
  }
}

TEST_F(Biases, ScaleGradient) {
  for (const DataType type : kTypes) {
    for (const std::int64_t columns : kColumns) {
      Problem p(type, type, columns);
      p.twins.expect_same(
          [&](const Memory& m) {
            return run::ScaleGradient{.type = type,
                                      .rows = p.rows(m),
                                      .columns = columns,
                                      .dy = m.at(p.y),
                                      .bias = m.as<void*>(p.bias_table),
                                      .dscales = m.as<float>(p.dscales)};
          },
          {first_of(p.dscales, Problem::kUsed)});
    }
  }
}

// To the byte: an overwritten gradient of no rows is zero, an added one stays.
TEST_F(Biases, AReplayFollowsTheSizesOnTheDevice) {
  for (const Write write : {Write::Overwrite, Write::Add}) {
    Problem p(DataType::Bf16, DataType::Fp32, 72);
    const MakeCall make = [&](const Memory& m) {
      return run::BiasGradient{.type = p.type,
                               .gradient_type = DataType::Fp32,
                               .write = write,
                               .rows = p.rows(m),
                               .columns = p.columns,
                               .dy = m.at(p.y),
                               .dbias = m.as<void*>(p.gradient_table)};
    };
    const Capture capture = p.twins.captured(make);
    for (const Sizes& sizes : std::vector<Sizes>{{0, 0, 113, 0}, {100, 1, 2, 3}}) {
      p.twins.change(p.sizes, sizes);
      std::vector<Part> written;
      for (std::size_t group = 0; group < sizes.size(); ++group) {
        if (sizes[group] > 0) written.push_back(all_of(p.gradients[group]));
      }
      p.twins.expect_same_replayed(capture, make, written);
    }
    p.twins.change(p.sizes, Sizes{0, 0, 0, 0});
    p.twins.expect_same_replayed(capture, make, {});
  }
}

}  // namespace
}  // namespace capo::gpu
