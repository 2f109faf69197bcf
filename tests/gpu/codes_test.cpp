// Codes of eight bits on the device: quantized tensors to the bit as the host has them, and
// products of codes as near to the host's as their units add.

#include "tests/gpu/twins.h"

#include <algorithm>
#include <optional>
#include <random>

namespace capo::gpu {
namespace {

using run::Codes;
using run::QuantizeRows;
using run::QuantizeWeights;
using run::ScaledProduct;
using run::Scaling;
using Kind = run::GroupedProduct::Kind;

using CodesOnDevice = Kernels;

constexpr std::array kScalings{Scaling::Block, Scaling::Mxfp8};

/// Memory for codes and scales.
struct CodesSlot {
  Slot codes;
  Slot scales;

  [[nodiscard]] Codes in(const Memory& m) const {
    return {.codes = m.as<std::uint8_t>(codes), .scales = m.at(scales)};
  }
};

CodesSlot poisoned(Twins& twins, std::int64_t codes, std::int64_t scales) {
  return {twins.add_numbers(std::vector<std::uint8_t>(static_cast<std::size_t>(codes), 0x7f)),
          twins.add_numbers(std::vector<std::uint8_t>(static_cast<std::size_t>(scales), 0xff))};
}

struct RowsShape {
  Sizes sizes;
  std::int64_t count = 0;
  std::int64_t columns = 0;
  std::size_t past = 0;  ///< bytes past a multiple of 256
};

// It names no part as written, so that every byte has to be the host's.
void check_rows(const RowsShape& shape, Scaling scaling, const Tensor& x) {
  SCOPED_TRACE("columns " + std::to_string(shape.columns) + ", scaling " +
               std::to_string(static_cast<int>(scaling)) + ", " + std::string(name_of(x.type())));
  Twins twins;
  const Slot of_x = twins.add(x, shape.past);
  const Slot sizes = twins.add_numbers(shape.sizes);
  const auto rows = [&](const Memory& m) {
    return run::Rows{.count = shape.count,
                     .groups = std::ssize(shape.sizes),
                     .sizes = shape.sizes.empty() ? nullptr : m.as<std::int64_t>(sizes)};
  };
  const std::int64_t depth =
      run::depth_of(rows(Memory(nullptr)).groups == 0 ? run::Rows{.count = shape.count}
                                                      : run::Rows{.count = shape.count,
                                                                  .groups = std::ssize(shape.sizes),
                                                                  .sizes = shape.sizes.data()});
  const CodesSlot along_columns =
      poisoned(twins, shape.count * shape.columns,
               run::bytes_of_scales(scaling, shape.count, shape.columns));
  const CodesSlot along_rows =
      poisoned(twins, shape.columns * depth, run::bytes_of_scales(scaling, shape.columns, depth));
  for (const bool both : {true, false}) {
    twins.expect_same(
        [&](const Memory& m) {
          return QuantizeRows{.scaling = scaling,
                              .type = x.type(),
                              .rows = rows(m),
                              .columns = shape.columns,
                              .x = m.at(of_x),
                              .along_columns = along_columns.in(m),
                              .along_rows = both ? along_rows.in(m) : Codes{}};
        },
        {});
  }
}

TEST_F(CodesOnDevice, OfEveryBf16Number) {
  Tensor x(DataType::Bf16, Values(65536));
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    std::memcpy(x.at(bits), &pattern, sizeof pattern);
  }
  for (const Scaling scaling : kScalings) {
    check_rows({.sizes = {512}, .count = 512, .columns = 128}, scaling, x);
    check_rows({.sizes = {32}, .count = 32, .columns = 2048}, scaling, x);
  }
}

TEST_F(CodesOnDevice, OfRowsInGroups) {
  for (const DataType type : kTypes) {
    for (const Scaling scaling : kScalings) {
      for (const RowsShape& shape :
           {RowsShape{.sizes = {130, 0, 1, 256, 40}, .count = 440, .columns = 150},
            RowsShape{.sizes = {130, 0, 1, 256, 40}, .count = 440, .columns = 272},
            RowsShape{.sizes = {5, 0, 9, 2}, .count = 21, .columns = 19, .past = 4},
            RowsShape{.sizes = {}, .count = 200, .columns = 64},
            RowsShape{.sizes = {0, 0}, .count = 8, .columns = 16}}) {
        Tensor x = at_random(type, shape.count * shape.columns, 1);
        if (!shape.sizes.empty()) x.spoil_from(sum_of(shape.sizes) * shape.columns);
        check_rows(shape, scaling, x);
      }
    }
  }
}

// The gates are 0, or so large that their sigmoid is 1, or 0: it is exact on every engine then.
Tensor with_exact_gates(DataType type, std::int64_t count, std::int64_t columns) {
  constexpr std::array kGates{0.0, 24.0, 31.0, 40.0, -104.0, -200.0};
  Tensor x = at_random(type, count * 2 * columns, 2);
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < count * columns; ++i) {
    x.set(i / columns * 2 * columns + i % columns, kGates[random() % kGates.size()]);
  }
  return x;
}

enum class Gates : std::uint8_t { Exact, Any };

// Rows that are made as they are quantized. With gates that are exact, every byte has to be the
// host's; with any, every byte that of the calls that write the rows and then quantize them.
class RowsOfSwiGlu {
 public:
  RowsOfSwiGlu(const RowsShape& shape, Scaling scaling, DataType type, run::RowsMade::By by,
               Gates gates)
      : shape_(shape), scaling_(scaling), type_(type), by_(by) {
    const bool is_gradient = by == run::RowsMade::By::SwiGluGradient;
    const std::int64_t gated = is_gradient ? shape.columns / 2 : shape.columns;
    const run::Rows all{.count = shape.count,
                        .groups = std::ssize(shape.sizes),
                        .sizes = shape.sizes.empty() ? nullptr : shape.sizes.data()};
    const std::int64_t used = shape.sizes.empty() ? shape.count : sum_of(shape.sizes);
    Tensor x = gates == Gates::Exact ? with_exact_gates(type, shape.count, gated)
                                     : at_random(type, shape.count * 2 * gated, 1);
    if (gates == Gates::Any) {
      for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x.value(i) * 6);
    }
    Tensor dy = at_random(type, shape.count * gated, 4);
    if (used < shape.count) {
      x.spoil_from(used * 2 * gated);
      dy.spoil_from(used * gated);
    }
    x_ = twins.add(x, shape.past);
    dy_ = twins.add(dy, shape.past);
    probabilities_ = twins.add(at_random(DataType::Fp32, shape.count, 5));
    sizes_ = twins.add_numbers(shape.sizes);
    written = twins.add(at_random(type, shape.count * shape.columns, 6));
    along_columns_ = poisoned(twins, shape.count * shape.columns,
                              run::bytes_of_scales(scaling, shape.count, shape.columns));
    along_rows_ = poisoned(twins, shape.columns * run::depth_of(all),
                           run::bytes_of_scales(scaling, shape.columns, run::depth_of(all)));
  }
  [[nodiscard]] QuantizeRows call(const Memory& m, bool is_scaled) const {
    const bool is_gradient = by_ == run::RowsMade::By::SwiGluGradient;
    return {.scaling = scaling_,
            .type = type_,
            .rows = {.count = shape_.count,
                     .groups = std::max<std::int64_t>(std::ssize(shape_.sizes), 1),
                     .sizes = shape_.sizes.empty() ? nullptr : m.as<std::int64_t>(sizes_)},
            .columns = shape_.columns,
            .x = m.at(x_),
            .made = {.by = by_,
                     .probabilities = is_scaled ? m.as<float>(probabilities_) : nullptr,
                     .dy = is_gradient ? m.at(dy_) : nullptr},
            .along_columns = along_columns_.in(m),
            .along_rows = along_rows_.in(m)};
  }

  Twins twins;
  Slot written;  ///< where the parts write the rows

 private:
  RowsShape shape_;
  Scaling scaling_;
  DataType type_;
  run::RowsMade::By by_;
  Slot x_, dy_, probabilities_, sizes_;
  CodesSlot along_columns_, along_rows_;
};

void check_made_rows(const RowsShape& shape, Scaling scaling, DataType type) {
  for (const auto by : {run::RowsMade::By::SwiGlu, run::RowsMade::By::SwiGluGradient}) {
    for (const bool is_scaled : {true, false}) {
      SCOPED_TRACE("columns " + std::to_string(shape.columns) + ", scaling " +
                   std::to_string(static_cast<int>(scaling)) + ", by " +
                   std::to_string(static_cast<int>(by)) + ", scaled " + std::to_string(is_scaled) +
                   ", " + std::string(name_of(type)));
      RowsOfSwiGlu exact(shape, scaling, type, by, Gates::Exact);
      exact.twins.expect_same([&](const Memory& m) { return exact.call(m, is_scaled); }, {});
      RowsOfSwiGlu any(shape, scaling, type, by, Gates::Any);
      any.twins.expect_same_as_parts([&](const Memory& m) { return any.call(m, is_scaled); },
                                     [&](const Memory& m) {
                                       std::vector<run::Call> parts;
                                       run::for_each_part(
                                           any.call(m, is_scaled), m.at(any.written),
                                           [&](const auto& part) { parts.emplace_back(part); });
                                       return parts;
                                     },
                                     any.written);
    }
  }
}

TEST_F(CodesOnDevice, OfRowsThatAreSwiGluOfOthers) {
  for (const DataType type : kTypes) {
    for (const Scaling scaling : kScalings) {
      for (const RowsShape& shape :
           {RowsShape{.sizes = {130, 0, 1, 256, 40}, .count = 440, .columns = 150},
            RowsShape{.sizes = {130, 0, 1, 256, 40}, .count = 440, .columns = 272},
            RowsShape{.sizes = {5, 0, 9, 2}, .count = 21, .columns = 18, .past = 4},
            RowsShape{.sizes = {200, 0, 57}, .count = 300, .columns = 512},
            RowsShape{.sizes = {}, .count = 200, .columns = 64},
            RowsShape{.sizes = {0, 0}, .count = 8, .columns = 16}}) {
        check_made_rows(shape, scaling, type);
      }
    }
  }
}

// Rows that others name, of which there are fewer; every byte has to be the host's.
void check_named_rows(const RowsShape& shape, Scaling scaling, DataType type) {
  SCOPED_TRACE("columns " + std::to_string(shape.columns) + ", scaling " +
               std::to_string(static_cast<int>(scaling)) + ", " + std::string(name_of(type)));
  const std::int64_t from = shape.count / 3 + 1;
  std::vector<std::int64_t> named;
  for (std::int64_t row = 0; row < shape.count; ++row) named.push_back(row * 7 % from);
  Twins twins;
  const Slot x = twins.add(at_random(type, from * shape.columns, 1), shape.past);
  const Slot sizes = twins.add_numbers(shape.sizes);
  const Slot sources = twins.add_numbers(named);
  const run::Rows all{
      .count = shape.count, .groups = std::ssize(shape.sizes), .sizes = shape.sizes.data()};
  const CodesSlot along_columns =
      poisoned(twins, shape.count * shape.columns,
               run::bytes_of_scales(scaling, shape.count, shape.columns));
  const CodesSlot along_rows =
      poisoned(twins, shape.columns * run::depth_of(all),
               run::bytes_of_scales(scaling, shape.columns, run::depth_of(all)));
  twins.expect_same(
      [&](const Memory& m) {
        return QuantizeRows{
            .scaling = scaling,
            .type = type,
            .rows = {.count = all.count, .groups = all.groups, .sizes = m.as<std::int64_t>(sizes)},
            .columns = shape.columns,
            .x = m.at(x),
            .made = {.by = run::RowsMade::By::Gather,
                     .sources = m.as<std::int64_t>(sources),
                     .from_rows = from},
            .along_columns = along_columns.in(m),
            .along_rows = along_rows.in(m)};
      },
      {});
}

TEST_F(CodesOnDevice, OfRowsThatOthersName) {
  for (const DataType type : kTypes) {
    for (const Scaling scaling : kScalings) {
      for (const RowsShape& shape :
           {RowsShape{.sizes = {130, 0, 1, 256, 53}, .count = 440, .columns = 150},
            RowsShape{.sizes = {130, 0, 1, 256, 53}, .count = 440, .columns = 272},
            RowsShape{.sizes = {5, 0, 9, 7}, .count = 21, .columns = 18, .past = 4},
            RowsShape{.sizes = {700, 0, 100, 1200}, .count = 2000, .columns = 1024}}) {
        check_named_rows(shape, scaling, type);
      }
    }
  }
}

// Every block takes several tiles, and loads one while it still quantizes that before.
TEST_F(CodesOnDevice, OfMoreTilesThanBlocks) {
  const RowsShape shape{.sizes = {700, 0, 1, 1200}, .count = 2000, .columns = 4096};
  for (const Scaling scaling : kScalings) {
    check_made_rows(shape, scaling, DataType::Bf16);
    Tensor x = at_random(DataType::Bf16, shape.count * shape.columns, 1);
    x.spoil_from(sum_of(shape.sizes) * shape.columns);
    check_rows(shape, scaling, x);
  }
}

TEST_F(CodesOnDevice, OfWeights) {
  for (const DataType type : kTypes) {
    for (const Scaling scaling : kScalings) {
      for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{200, 150},
                                    std::pair<std::int64_t, std::int64_t>{256, 128},
                                    std::pair<std::int64_t, std::int64_t>{7, 300}}) {
        Twins twins;
        std::vector<Slot> w;
        for (std::uint32_t seed = 1; seed <= 3; ++seed) {
          w.push_back(twins.add(at_random(type, in * out, seed)));
        }
        const Slot table = twins.add_table(w);
        const std::int64_t width = run::block_width(scaling);
        const CodesSlot along_in =
            poisoned(twins, 3 * in * out, 3 * run::bytes_of_scales(scaling, out, in, width));
        const CodesSlot along_out =
            poisoned(twins, 3 * in * out, 3 * run::bytes_of_scales(scaling, in, out, width));
        twins.expect_same(
            [&, in = in, out = out](const Memory& m) {
              return QuantizeWeights{.scaling = scaling,
                                     .type = type,
                                     .groups = 3,
                                     .in = in,
                                     .out = out,
                                     .w = m.as<void*>(table),
                                     .along_in = along_in.in(m),
                                     .along_out = along_out.in(m)};
            },
            {});
      }
    }
  }
}

// Any codes but NaN, and scales so small that no sum leaves the range of fp16.
CodesSlot some_codes(Twins& twins, Scaling scaling, std::int64_t codes, std::int64_t scale_bytes,
                     std::uint32_t seed, std::optional<int> all = std::nullopt) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(codes));
  for (std::uint8_t& byte : bytes) {
    do byte = static_cast<std::uint8_t>(random() >> 8);
    while ((byte & 0x7fU) == 0x7fU);
  }
  const auto exponent = [&] { return all.value_or(115 + static_cast<int>(random() % 7)); };
  CodesSlot slot{.codes = twins.add_numbers(bytes), .scales = {}};
  if (scaling == Scaling::Mxfp8) {
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(scale_bytes));
    for (std::uint8_t& scale : scales) scale = static_cast<std::uint8_t>(exponent());
    slot.scales = twins.add_numbers(scales);
  } else {
    std::vector<float> scales(static_cast<std::size_t>(scale_bytes / 4));
    for (float& scale : scales) scale = std::ldexp(1.0F, exponent() - 127);
    slot.scales = twins.add_numbers(scales);
  }
  return slot;
}

struct ProductShape {
  Sizes sizes;
  std::int64_t count = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::size_t past = 0;       ///< of the second group's gradient
  bool least_scales = false;  ///< B's are 2^-127, and A's 2^100
};

void check_product(const ProductShape& shape, Kind kind, Scaling scaling, DataType type,
                   Write write) {
  SCOPED_TRACE("in " + std::to_string(shape.in) + ", out " + std::to_string(shape.out) + ", kind " +
               std::to_string(static_cast<int>(kind)) + ", scaling " +
               std::to_string(static_cast<int>(scaling)) + ", write " +
               std::to_string(static_cast<int>(write)) + ", " + std::string(name_of(type)));
  Twins twins;
  const std::int64_t groups = std::ssize(shape.sizes);
  const Slot sizes = twins.add_numbers(shape.sizes);
  const std::int64_t all =
      run::depth_of({.count = shape.count, .groups = groups, .sizes = shape.sizes.data()});
  const bool sums_rows = kind == Kind::WeightGradient;
  // The exponents of A's scales and of B's.
  const auto of_a = shape.least_scales ? std::optional(227) : std::nullopt;
  const auto of_b = shape.least_scales ? std::optional(0) : std::nullopt;
  const auto rows_of = [&](std::int64_t columns, std::uint32_t seed, std::optional<int> exponent) {
    return sums_rows
               ? some_codes(twins, scaling, columns * all,
                            run::bytes_of_scales(scaling, columns, all), seed, exponent)
               : some_codes(twins, scaling, columns * shape.count,
                            run::bytes_of_scales(scaling, shape.count, columns), seed, exponent);
  };
  const CodesSlot x = rows_of(shape.in, 1, sums_rows ? of_b : of_a);
  const CodesSlot y = rows_of(shape.out, 2, of_a);
  const bool forward = kind == Kind::Forward;
  const CodesSlot w = some_codes(
      twins, scaling, groups * shape.in * shape.out,
      groups * run::bytes_of_scales(scaling, forward ? shape.out : shape.in,
                                    forward ? shape.in : shape.out, run::block_width(scaling)),
      3, of_b);
  std::vector<Part> written;
  std::vector<Slot> gradients;
  const std::int64_t across = forward ? shape.out : shape.in;
  const Slot result = twins.add(at_random(type, shape.count * across, 4));
  for (std::int64_t group = 0; group < groups && sums_rows; ++group) {
    gradients.push_back(
        twins.add(at_random(type, shape.in * shape.out, 5), group == 1 ? shape.past : 0));
    written.push_back(all_of(gradients.back()));
  }
  const Slot table = twins.add_table(gradients);
  if (!sums_rows) written = {first_of(result, sum_of(shape.sizes) * across)};
  for (Part& part : written) part.value = Part::Value::Coarse;
  twins.expect_same(
      [&](const Memory& m) {
        return ScaledProduct{
            .kind = kind,
            .scaling = scaling,
            .type = type,
            .write = write,
            .rows = {.count = shape.count, .groups = groups, .sizes = m.as<std::int64_t>(sizes)},
            .in = shape.in,
            .out = shape.out,
            .x = x.in(m),
            .y = y.in(m),
            .w = w.in(m),
            .result = m.at(result),
            .gradients = m.as<void*>(table)};
      },
      written);
}

// Codes between the rows of a group and the end of its last block count in this test, since nothing
// has put zeros there: sizes are whole blocks, or the kind does not sum over rows.
void check_products(const ProductShape& shape, Scaling scaling, DataType type) {
  check_product(shape, Kind::Forward, scaling, type, Write::Overwrite);
  check_product(shape, Kind::InputGradient, scaling, type, Write::Overwrite);
  ProductShape whole = shape;
  for (std::int64_t& size : whole.sizes) size = size / 128 * 128;
  for (const Write write : {Write::Overwrite, Write::Add}) {
    check_product(whole, Kind::WeightGradient, scaling, type, write);
    check_product(whole, Kind::WeightGradient, scaling, DataType::Fp32, write);
  }
}

TEST_F(CodesOnDevice, ProductsOfOddSizes) {
  for (const Scaling scaling : kScalings) {
    for (const DataType type : kTypes) {
      check_products({.sizes = {130, 0, 3, 257}, .count = 400, .in = 150, .out = 37}, scaling,
                     type);
    }
  }
}

TEST_F(CodesOnDevice, ProductsOfTilesThatEndAnywhere) {
  for (const Scaling scaling : kScalings) {
    for (const DataType type : kTypes) {
      check_products({.sizes = {130, 0, 3, 257, 1}, .count = 400, .in = 80, .out = 272}, scaling,
                     type);
      check_products({.sizes = {0, 128, 64, 0, 63}, .count = 255, .in = 400, .out = 144}, scaling,
                     type);
    }
  }
}

TEST_F(CodesOnDevice, ProductsOfManyTilesAndBlocks) {
  for (const Scaling scaling : kScalings) {
    check_products({.sizes = {700, 1, 800, 505}, .count = 2048, .in = 1024, .out = 528}, scaling,
                   DataType::Bf16);
  }
}

// Every block takes several tiles, of several groups: no device has as many multiprocessors.
TEST_F(CodesOnDevice, ProductsOfMoreTilesThanBlocks) {
  check_products({.sizes = {300, 0, 257, 128, 200}, .count = 900, .in = 128, .out = 8208},
                 Scaling::Block, DataType::Bf16);
}

// The least scale of Mxfp8 is a subnormal number. Of tensors that get smaller from layer to layer a
// whole block may have it, and its products are no zeros.
TEST_F(CodesOnDevice, ProductsOfTheLeastScales) {
  for (const Kind kind : {Kind::Forward, Kind::InputGradient, Kind::WeightGradient}) {
    check_product({.sizes = {128, 0, 256}, .count = 384, .in = 64, .out = 32, .least_scales = true},
                  kind, Scaling::Mxfp8, DataType::Fp32, Write::Overwrite);
  }
}

TEST_F(CodesOnDevice, ProductsIntoGradientsThatLieAnywhere) {
  for (const Write write : {Write::Overwrite, Write::Add}) {
    check_product({.sizes = {256, 128, 0}, .count = 384, .in = 144, .out = 80, .past = 4},
                  Kind::WeightGradient, Scaling::Block, DataType::Fp32, write);
  }
}

}  // namespace
}  // namespace capo::gpu
