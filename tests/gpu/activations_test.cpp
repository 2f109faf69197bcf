// SwiGLU and its gradient on the device, against the host's.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

constexpr std::array<std::int64_t, 5> kColumns{1, 7, 64, 1037, 2304};

// Rows of two groups and an empty one; what lies behind them is NaN.
struct Problem {
  Problem(DataType the_type, std::int64_t the_columns) : type(the_type), columns(the_columns) {
    Tensor x_values = at_random(type, kCount * 2 * columns, 1);
    for (std::int64_t i = 0; i < x_values.count(); ++i) x_values.set(i, x_values.value(i) * 6);
    x_values.spoil_from(kUsed * 2 * columns);
    Tensor dy_values = at_random(type, kCount * columns, 2);
    dy_values.spoil_from(kUsed * columns);
    x = twins.add(x_values);
    dy = twins.add(dy_values);
    y = twins.add(at_random(type, kCount * columns, 3));
    dx = twins.add(at_random(type, kCount * 2 * columns, 4));
    probabilities = twins.add(at_random(DataType::Fp32, kCount, 5));
    dprobabilities = twins.add(at_random(DataType::Fp32, kCount, 6));
    sizes = twins.add_numbers(Sizes{12, 0, 21});
  }
  [[nodiscard]] run::Rows rows(const Memory& m) const {
    return {.count = kCount, .groups = 3, .sizes = m.as<std::int64_t>(sizes)};
  }

  static constexpr std::int64_t kCount = 40;
  static constexpr std::int64_t kUsed = 33;
  DataType type;
  std::int64_t columns;
  Twins twins;
  Slot x, dy, y, dx, probabilities, dprobabilities, sizes;
};

enum class Scaled : std::uint8_t { No, Yes };

using Activations = Kernels;

TEST_F(Activations, SwiGlu) {
  for (const DataType type : kTypes) {
    for (const std::int64_t columns : kColumns) {
      for (const Scaled scaled : {Scaled::No, Scaled::Yes}) {
        Problem p(type, columns);
        p.twins.expect_same(
            [&](const Memory& m) {
              return run::SwiGlu{
                  .type = type,
                  .rows = p.rows(m),
                  .columns = columns,
                  .x = m.at(p.x),
                  .probabilities = scaled == Scaled::Yes ? m.as<float>(p.probabilities) : nullptr,
                  .y = m.at(p.y)};
            },
            {first_of(p.y, Problem::kUsed * columns)});
      }
    }
  }
}

TEST_F(Activations, SwiGluGradientAlsoInPlace) {
  for (const DataType type : kTypes) {
    for (const std::int64_t columns : kColumns) {
      for (const Scaled scaled : {Scaled::No, Scaled::Yes}) {
        Problem p(type, columns);
        for (const Slot& to : {p.dx, p.x}) {
          const bool is_scaled = scaled == Scaled::Yes;
          std::vector<Part> written{first_of(to, Problem::kUsed * 2 * columns)};
          if (is_scaled) written.push_back(first_of(p.dprobabilities, Problem::kUsed));
          p.twins.expect_same(
              [&](const Memory& m) {
                return run::SwiGluGradient{
                    .type = type,
                    .rows = p.rows(m),
                    .columns = columns,
                    .x = m.at(p.x),
                    .probabilities = is_scaled ? m.as<float>(p.probabilities) : nullptr,
                    .dy = m.at(p.dy),
                    .dx = m.at(to),
                    .dprobabilities = is_scaled ? m.as<float>(p.dprobabilities) : nullptr};
              },
              written);
        }
      }
    }
  }
}

// The rows' gradients may be wanted elsewhere: then nothing but the probabilities' is written.
TEST_F(Activations, GradientsOfProbabilitiesAlone) {
  for (const DataType type : kTypes) {
    for (const std::int64_t columns : kColumns) {
      Problem p(type, columns);
      const auto call = [&](const Memory& m, void* dx) {
        return run::SwiGluGradient{.type = type,
                                   .rows = p.rows(m),
                                   .columns = columns,
                                   .x = m.at(p.x),
                                   .probabilities = m.as<float>(p.probabilities),
                                   .dy = m.at(p.dy),
                                   .dx = dx,
                                   .dprobabilities = m.as<float>(p.dprobabilities)};
      };
      p.twins.expect_same([&](const Memory& m) { return call(m, nullptr); },
                          {first_of(p.dprobabilities, Problem::kUsed)});
      p.twins.expect_same_as_parts(
          [&](const Memory& m) { return call(m, nullptr); },
          [&](const Memory& m) { return std::vector<run::Call>{call(m, m.at(p.dx))}; }, p.dx);
    }
  }
}

TEST_F(Activations, AReplayFollowsTheSizesOnTheDevice) {
  Problem p(DataType::Bf16, 64);
  const MakeCall make = [&](const Memory& m) {
    return run::SwiGlu{
        .type = p.type, .rows = p.rows(m), .columns = p.columns, .x = m.at(p.x), .y = m.at(p.y)};
  };
  const Capture capture = p.twins.captured(make);
  for (const Sizes& sizes : std::vector<Sizes>{{0, 0, 0}, {0, 33, 0}, {1, 2, 3}}) {
    p.twins.change(p.sizes, sizes);
    p.twins.expect_same_replayed(capture, make, {first_of(p.y, sum_of(sizes) * p.columns)});
  }
}

}  // namespace
}  // namespace capo::gpu
