// Quantized rows and weights block by block against their definition, and products of codes against
// sums in double of what the codes stand for.

#include "run/kernels/codes.h"
#include "core/base/index.h"
#include "tests/run/host/tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace capo::run::host {
namespace {

using Kind = GroupedProduct::Kind;
using Sizes = std::vector<std::int64_t>;

// Memory for codes and their scales, poisoned.
struct CodesHere {
  CodesHere(std::int64_t codes, std::int64_t scales)
      : of_codes(as_index(codes), 0xffU), of_scales(as_index(scales), std::byte{0xff}) {}
  [[nodiscard]] Codes view() { return {.codes = of_codes.data(), .scales = of_scales.data()}; }

  std::vector<std::uint8_t> of_codes;
  std::vector<std::byte> of_scales;
};

float scale_of(const CodesHere& codes, std::int64_t at, Scaling scaling) {
  if (scaling == Scaling::Mxfp8) {
    return to_float(E8m0{std::to_integer<std::uint8_t>(codes.of_scales[as_index(at)])});
  }
  float scale = 0;
  std::memcpy(&scale, &codes.of_scales[as_index(at) * 4], 4);
  return scale;
}

struct VectorNumbers {
  std::int64_t count = 0;
  std::int64_t depth = 0;
  std::function<float(std::int64_t, std::int64_t)> at;
};
struct CodesLayout {
  std::int64_t step = 0;   ///< codes from a vector to the next
  std::int64_t first = 0;  ///< the first code
  std::int64_t first_scale = 0;
  std::int64_t scale_step = 0;  ///< scales from a block of depth to the next
  std::int64_t width = 1;
};

// Every block again, from its numbers.
void expect_quantized(const CodesHere& codes, const CodesLayout& in, const VectorNumbers& numbers,
                      Scaling scaling) {
  const std::int64_t deep = scaling == Scaling::Block ? 128 : 32;
  for (std::int64_t v = 0; v < numbers.count; v += in.width) {
    for (std::int64_t k = 0; k < numbers.depth; k += deep) {
      float largest = 0;
      const auto each = [&](auto visit) {
        for (std::int64_t w = v; w < std::min(v + in.width, numbers.count); ++w) {
          for (std::int64_t i = k; i < std::min(k + deep, numbers.depth); ++i) visit(w, i);
        }
      };
      each([&](auto w, auto i) { largest = std::max(largest, std::abs(numbers.at(w, i))); });
      const BlockScale should = scaling == Scaling::Block
                                    ? scale_of_block(largest)
                                    : run::scale_of(exponent_of_block(largest));
      const std::int64_t at = in.first_scale + k / deep * in.scale_step + v / in.width;
      EXPECT_EQ(scale_of(codes, at, scaling), should.down) << v << ' ' << k;
      each([&](auto w, auto i) {
        const std::uint8_t code = codes.of_codes[as_index(in.first + w * in.step + i)];
        ASSERT_EQ(code, round_to<E4m3>(numbers.at(w, i) * should.up).bits) << w << ' ' << i;
      });
    }
  }
}

// Rows in groups as codes both ways. Columns and sizes end in the middle of blocks.
struct QuantizedRows {
  QuantizedRows(Scaling scaling, DataType type, std::int64_t the_columns, std::uint32_t seed,
                const Sizes& the_sizes)
      : columns(the_columns),
        sizes(the_sizes),
        rows{.count = 440, .groups = std::ssize(sizes), .sizes = sizes.data()},
        x(at_random(type, rows.count * columns, seed)),
        along_columns(rows.count * columns,
                      whole_blocks(columns, block_depth(scaling)) * rows.count * 4),
        along_rows(columns * depth_of(rows), depth_of(rows) / block_depth(scaling) * columns * 4),
        call{.scaling = scaling,
             .type = type,
             .rows = rows,
             .columns = columns,
             .x = x.data(),
             .along_columns = along_columns.view(),
             .along_rows = along_rows.view()} {
    execute(call);
  }
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(x.value(row * columns + column));
  }

  std::int64_t columns;
  Sizes sizes;
  Rows rows;
  Tensor x;
  CodesHere along_columns;
  CodesHere along_rows;
  QuantizeRows call;
};

const Sizes kSizes{130, 0, 1, 256, 40};

struct Case {
  Scaling scaling;
  DataType type;
};
class CodesOf : public testing::TestWithParam<Case> {};

TEST_P(CodesOf, RowsFollowFromTheirBlocks) {
  const auto [scaling, type] = GetParam();
  const QuantizedRows q(scaling, type, 150, 1, kSizes);
  const std::int64_t used = std::reduce(kSizes.begin(), kSizes.end());
  expect_quantized(q.along_columns, {.step = 150, .scale_step = q.rows.count},
                   {used, 150, [&](auto row, auto i) { return q.at(row, i); }}, scaling);
  EXPECT_EQ(q.along_columns.of_codes[as_index(used * 150)], 0xff) << "rows that are not in use";
  std::int64_t from = 0;
  std::int64_t first = 0;
  for (const std::int64_t size : kSizes) {
    const std::int64_t padded = whole_blocks(size, 128) * 128;
    const CodesLayout in{.step = depth_of(q.rows),
                         .first = from,
                         .first_scale = from / block_depth(scaling) * 150,
                         .scale_step = 150};
    const auto number = [&](auto column, auto i) {
      return i < size ? q.at(first + i, column) : 0.0F;
    };
    expect_quantized(q.along_rows, in, {150, padded, number}, scaling);
    from += padded;
    first += size;
  }
}

TEST_P(CodesOf, WeightsFollowFromTheirBlocksBothWays) {
  const auto [scaling, type] = GetParam();
  constexpr std::int64_t kIn = 200;
  constexpr std::int64_t kOut = 150;
  std::vector<Tensor> w{at_random(type, kOut * kIn, 1), at_random(type, kOut * kIn, 2)};
  std::vector<void*> table{w[0].data(), w[1].data()};
  const std::int64_t scales = 2 * whole_blocks(kIn, 32) * whole_blocks(kOut, 1) * 4;
  CodesHere along_in(2 * kOut * kIn, scales);
  CodesHere along_out(2 * kOut * kIn, scales);
  execute(QuantizeWeights{.scaling = scaling,
                          .type = type,
                          .groups = 2,
                          .in = kIn,
                          .out = kOut,
                          .w = table.data(),
                          .along_in = along_in.view(),
                          .along_out = along_out.view()});
  const std::int64_t width = scaling == Scaling::Block ? 128 : 1;
  const auto check = [&](const CodesHere& codes, std::int64_t count, std::int64_t depth,
                         auto number) {
    const std::int64_t across = whole_blocks(count, width);
    for (std::size_t group = 0; group < 2; ++group) {
      const auto at = static_cast<std::int64_t>(group);
      const CodesLayout in{.step = depth,
                           .first = at * count * depth,
                           .first_scale = at * across * whole_blocks(depth, block_depth(scaling)),
                           .scale_step = across,
                           .width = width};
      expect_quantized(codes, in,
                       {count, depth, [&](auto v, auto k) { return number(w[group], v, k); }},
                       scaling);
    }
  };
  check(along_in, kOut, kIn,
        [](const Tensor& of, auto v, auto k) { return static_cast<float>(of.value(v * kIn + k)); });
  check(along_out, kIn, kOut,
        [](const Tensor& of, auto v, auto k) { return static_cast<float>(of.value(k * kIn + v)); });
}

// Rows of a SwiGlu or of its gradient, and memory for their codes.
struct MadeRows {
  MadeRows(Scaling scaling, DataType type, RowsMade::By by, std::int64_t the_columns)
      : is_gated(by == RowsMade::By::SwiGlu),
        columns(the_columns),
        rows{.count = 440, .groups = std::ssize(kSizes), .sizes = kSizes.data()},
        x(at_random(type, rows.count * columns * (is_gated ? 2 : 1), 1)),
        dy(at_random(type, rows.count * columns / 2, 2)),
        probabilities(at_random(DataType::Fp32, rows.count, 3)),
        call{.scaling = scaling,
             .type = type,
             .rows = rows,
             .columns = columns,
             .x = x.data(),
             .made = {.by = by,
                      .probabilities = static_cast<const float*>(probabilities.data()),
                      .dy = is_gated ? nullptr : dy.data()}} {
    // Gates of all sizes, and rows behind those in use that nobody may read.
    for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x.value(i) * 6);
    const std::int64_t used = std::reduce(kSizes.begin(), kSizes.end());
    x.spoil_from(used * columns * (is_gated ? 2 : 1));
    dy.spoil_from(used * columns / 2);
  }
  /// The rows, as a call of its own writes them.
  [[nodiscard]] Tensor written() {
    Tensor made(call.type, Values(as_index(rows.count * columns), 0.0));
    if (is_gated) {
      execute(SwiGlu{.type = call.type,
                     .rows = rows,
                     .columns = columns,
                     .x = x.data(),
                     .probabilities = call.made.probabilities,
                     .y = made.data()});
    } else {
      execute(SwiGluGradient{.type = call.type,
                             .rows = rows,
                             .columns = columns / 2,
                             .x = x.data(),
                             .probabilities = call.made.probabilities,
                             .dy = dy.data(),
                             .dx = made.data()});
    }
    return made;
  }

  bool is_gated;
  std::int64_t columns;
  Rows rows;
  Tensor x;
  Tensor dy;
  Tensor probabilities;
  QuantizeRows call;
};

struct CodesBothWays {
  explicit CodesBothWays(QuantizeRows call)
      : along_columns(call.rows.count * call.columns,
                      bytes_of_scales(call.scaling, call.rows.count, call.columns)),
        along_rows(call.columns * depth_of(call.rows),
                   bytes_of_scales(call.scaling, call.columns, depth_of(call.rows))) {
    call.along_columns = along_columns.view();
    call.along_rows = along_rows.view();
    execute(call);
  }
  CodesHere along_columns;
  CodesHere along_rows;
};
bool are_same(const CodesHere& a, const CodesHere& b) {
  return a.of_codes == b.of_codes && a.of_scales == b.of_scales;
}

TEST_P(CodesOf, RowsThatAreMadeAreThoseThatCallsOfTheirOwnWrite) {
  const auto [scaling, type] = GetParam();
  for (const RowsMade::By by : {RowsMade::By::SwiGlu, RowsMade::By::SwiGluGradient}) {
    for (const bool has_probabilities : {true, false}) {
      MadeRows made(scaling, type, by, 150);
      const Tensor of_others = made.written();
      if (!has_probabilities) made.call.made.probabilities = nullptr;
      const Tensor rows = made.written();
      QuantizeRows plain = made.call;
      plain.made = {};
      plain.x = rows.data();
      const CodesBothWays is(made.call);
      const CodesBothWays should(plain);
      EXPECT_TRUE(are_same(is.along_columns, should.along_columns));
      EXPECT_TRUE(are_same(is.along_rows, should.along_rows));
      plain.x = of_others.data();
      const CodesBothWays other(plain);
      EXPECT_EQ(are_same(is.along_columns, other.along_columns), has_probabilities);
      EXPECT_EQ(are_same(is.along_rows, other.along_rows), has_probabilities);
    }
  }
}

// Every row is named by another one, some more than once.
TEST_P(CodesOf, RowsThatAreNamedAreThoseThatAGatherWrites) {
  const auto [scaling, type] = GetParam();
  constexpr std::int64_t kFrom = 100;
  constexpr std::int64_t kAcross = 150;
  const Rows rows{.count = 440, .groups = std::ssize(kSizes), .sizes = kSizes.data()};
  Tensor x = at_random(type, kFrom * kAcross, 1);
  std::vector<std::int64_t> sources;
  for (std::int64_t row = 0; row < rows.count; ++row) sources.push_back(row * 7 % kFrom);
  Tensor gathered(type, Values(as_index(rows.count * kAcross), 0.0));
  execute(Gather{.rows = rows.count,
                 .row_bytes = kAcross * (type == DataType::Fp32 ? 4 : 2),
                 .index = sources.data(),
                 .from_rows = kFrom,
                 .from = x.data(),
                 .to = gathered.data()});
  QuantizeRows call{
      .scaling = scaling, .type = type, .rows = rows, .columns = kAcross, .x = gathered.data()};
  const CodesBothWays should(call);
  call.x = x.data();
  call.made = {.by = RowsMade::By::Gather, .sources = sources.data(), .from_rows = kFrom};
  const CodesBothWays is(call);
  EXPECT_TRUE(are_same(is.along_columns, should.along_columns));
  EXPECT_TRUE(are_same(is.along_rows, should.along_rows));
  ++sources[0];
  EXPECT_FALSE(are_same(CodesBothWays(call).along_columns, should.along_columns));
}

// All three products, of operands that end in the middle of blocks.
TEST_P(CodesOf, ProductsAreThoseOfTheNumbersThatCodesStandFor) {
  const auto [scaling, type] = GetParam();
  constexpr std::int64_t kIn = 150;
  constexpr std::int64_t kOut = 40;
  QuantizedRows x(scaling, type, kIn, 1, kSizes);
  QuantizedRows y(scaling, type, kOut, 2, kSizes);
  const std::int64_t groups = std::ssize(kSizes);
  std::vector<Tensor> w;
  std::vector<void*> table;
  for (std::int64_t group = 0; group < groups; ++group) {
    w.push_back(at_random(type, kOut * kIn, 3 + static_cast<std::uint32_t>(group)));
  }
  for (Tensor& each : w) table.push_back(each.data());
  const std::int64_t scales = groups * whole_blocks(kIn, 32) * kIn * 4;
  CodesHere along_in(groups * kOut * kIn, scales);
  CodesHere along_out(groups * kOut * kIn, scales);
  execute(QuantizeWeights{.scaling = scaling,
                          .type = type,
                          .groups = groups,
                          .in = kIn,
                          .out = kOut,
                          .w = table.data(),
                          .along_in = along_in.view(),
                          .along_out = along_out.view()});
  ScaledProduct call{.scaling = scaling, .type = type, .rows = x.rows, .in = kIn, .out = kOut};
  Tensor forward(type, Values(as_index(x.rows.count * kOut), std::nan("")));
  call.x = x.along_columns.view();
  call.w = along_in.view();
  call.result = forward.data();
  execute(call);
  Tensor backward(type, Values(as_index(x.rows.count * kIn), std::nan("")));
  call.kind = Kind::InputGradient;
  call.y = y.along_columns.view();
  call.w = along_out.view();
  call.result = backward.data();
  execute(call);
  call.kind = Kind::WeightGradient;
  call.type = DataType::Fp32;
  call.x = x.along_rows.view();
  call.y = y.along_rows.view();
  std::vector<Tensor> dw;
  for (std::int64_t group = 0; group < groups; ++group) {
    dw.push_back(at_random(DataType::Fp32, kOut * kIn, 20));
  }
  const double before = dw[0].value(0);
  for (std::size_t group = 0; group < dw.size(); ++group) table[group] = dw[group].data();
  call.gradients = table.data();
  call.write = Write::Add;
  execute(call);

  // What a code of either operand stands for, by its row and column.
  const std::int64_t deep = block_depth(scaling);
  const auto by_row = [&](const QuantizedRows& of, std::int64_t row, std::int64_t i) {
    return static_cast<double>(
               to_float(E4m3{of.along_columns.of_codes[as_index(row * of.columns + i)]})) *
           scale_of(of.along_columns, i / deep * of.rows.count + row, scaling);
  };
  const auto by_column = [&](const QuantizedRows& of, std::int64_t from, std::int64_t i,
                             std::int64_t column) {
    const std::int64_t at = column * depth_of(of.rows) + from + i;
    return static_cast<double>(to_float(E4m3{of.along_rows.of_codes[as_index(at)]})) *
           scale_of(of.along_rows, (from + i) / deep * of.columns + column, scaling);
  };
  const auto weight = [&](const CodesHere& of, std::int64_t group, std::int64_t count,
                          std::int64_t depth, std::int64_t v, std::int64_t k) {
    const std::int64_t width = block_width(scaling);
    const std::int64_t across = whole_blocks(count, width);
    const std::int64_t at =
        group * across * whole_blocks(depth, deep) + k / deep * across + v / width;
    return static_cast<double>(
               to_float(E4m3{of.of_codes[as_index((group * count + v) * depth + k)]})) *
           scale_of(of, at, scaling);
  };
  const double digits = type == DataType::Fp16 ? 0x1p-10 : 0x1p-7;
  std::int64_t first = 0;
  std::int64_t from = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t size = kSizes[as_index(group)];
    for (std::int64_t row = first; row < first + size; row += 7) {
      for (std::int64_t o = 0; o < kOut; o += 3) {
        double sum = 0;
        for (std::int64_t k = 0; k < kIn; ++k) {
          sum += by_row(x, row, k) * weight(along_in, group, kOut, kIn, o, k);
        }
        EXPECT_NEAR(forward.value(row * kOut + o), sum, std::abs(sum) * digits + 1e-4);
      }
      for (std::int64_t i = 0; i < kIn; i += 11) {
        double sum = 0;
        for (std::int64_t k = 0; k < kOut; ++k) {
          sum += by_row(y, row, k) * weight(along_out, group, kIn, kOut, i, k);
        }
        EXPECT_NEAR(backward.value(row * kIn + i), sum, std::abs(sum) * digits + 1e-4);
      }
    }
    for (std::int64_t o = 0; o < kOut; o += 3) {
      for (std::int64_t i = 0; i < kIn; i += 11) {
        double sum = at_random(DataType::Fp32, kOut * kIn, 20).value(o * kIn + i);
        for (std::int64_t row = 0; row < size; ++row) {
          sum += by_column(y, from, row, o) * by_column(x, from, row, i);
        }
        EXPECT_NEAR(dw[as_index(group)].value(o * kIn + i), sum, std::abs(sum) * 1e-5 + 1e-4);
      }
    }
    first += size;
    from += whole_blocks(size, 128) * 128;
  }
  EXPECT_EQ(dw[1].value(0), before) << "an empty group adds nothing";
  EXPECT_TRUE(std::isnan(forward.value(first * kOut))) << "rows that are not in use";
  call.write = Write::Overwrite;
  execute(call);
  EXPECT_EQ(dw[1].value(0), 0) << "an empty group's gradient is overwritten";
}

INSTANTIATE_TEST_SUITE_P(
    All, CodesOf,
    testing::Values(Case{Scaling::Block, DataType::Bf16}, Case{Scaling::Block, DataType::Fp16},
                    Case{Scaling::Mxfp8, DataType::Bf16}, Case{Scaling::Mxfp8, DataType::Fp32}),
    [](const auto& made) {
      return std::string(made.param.scaling == Scaling::Block ? "Block" : "Mxfp8") + "Of" +
             std::string(name_of(made.param.type));
    });

}  // namespace
}  // namespace capo::run::host
