// How fast products of codes are on this device, beside the same products in bf16.
//
//   bench_gpu_codes [rows] [block|mxfp8]     16384 rows and both recipes if nothing is said
//
// The layers and the rounds are those of products.cpp. Operands of the bf16 product are quantized
// by recipe Block or Mxfp8; the third rate counts the quantization of the rows with the product,
// both ways, and the last column is what that takes by itself. Weights are quantized once a step,
// and no rate counts them. The error is relative to the bf16 product, so that it is the recipe's:
// about 4 %, which two roundings to four digits make. Ends with 1 where it is larger than 6 %.

#include "bench/gpu/codes.h"
#include "bench/gpu/timing.h"
#include "gpu/kernels/kernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace capo::bench;
using capo::run::Codes;
using capo::run::Rows;
using capo::run::Scaling;
using Kind = capo::run::GroupedProduct::Kind;

constexpr int kRounds = 9;

class Codings {
 public:
  Codings(const Stream& stream, Scaling scaling, const Layer& layer, std::int64_t rows,
          const Sizes& sizes)
      : stream_(stream),
        scaling_(scaling),
        layer_(layer),
        sizes_(bytes_of(layer.groups, 8)),
        table_(bytes_of(layer.groups, 8)),
        gradients_(bytes_of(layer.groups, 8)),
        rows_{.count = rows,
              .groups = layer.groups,
              .sizes = reinterpret_cast<const std::int64_t*>(sizes_.at())},
        x_(bytes_of(rows * layer.in, 2)),
        y_(bytes_of(rows * layer.out, 2)),
        w_(bytes_of(layer.groups * layer.out * layer.in, 2)),
        result_(std::max(bytes_of(rows * std::max(layer.in, layer.out), 2),
                         bytes_of(layer.groups * layer.out * layer.in, 4))),
        x_columns_(scaling, 1, rows, layer.in, 1),
        x_rows_(scaling, 1, layer.in, depth_of(rows_), 1),
        y_columns_(scaling, 1, rows, layer.out, 1),
        y_rows_(scaling, 1, layer.out, depth_of(rows_), 1),
        w_in_(scaling, layer.groups, layer.out, layer.in, block_width(scaling)),
        w_out_(scaling, layer.groups, layer.in, layer.out, block_width(scaling)) {
    stream.fill(x_, random_bytes(2, 1));
    stream.fill(y_, random_bytes(2, 2));
    stream.fill(w_, random_bytes(2, 3));
    stream.copy(sizes_.at(), sizes.data(), sizes_.bytes(), "write sizes");
    write_table(table_, w_, 2);
    write_table(gradients_, result_, 4);
    launch(capo::run::QuantizeWeights{.scaling = scaling,
                                      .groups = layer.groups,
                                      .in = layer.in,
                                      .out = layer.out,
                                      .w = reinterpret_cast<void* const*>(table_.at()),
                                      .along_in = w_in_.view(),
                                      .along_out = w_out_.view()});
    quantize(Kind::Forward);
    quantize(Kind::InputGradient);
  }

  /// The rows that a kind's product reads first: those of x, or those of y. A gradient of weights
  /// reads what the others left.
  void quantize(Kind kind) const {
    const bool forward = kind == Kind::Forward;
    launch(capo::run::QuantizeRows{.scaling = scaling_,
                                   .rows = rows_,
                                   .columns = forward ? layer_.in : layer_.out,
                                   .x = forward ? x_.at() : y_.at(),
                                   .along_columns = (forward ? x_columns_ : y_columns_).view(),
                                   .along_rows = (forward ? x_rows_ : y_rows_).view()});
  }
  void multiply_codes(Kind kind) const {
    const bool sums_rows = kind == Kind::WeightGradient;
    launch(capo::run::ScaledProduct{.kind = kind,
                                    .scaling = scaling_,
                                    .type = sums_rows ? capo::DataType::Fp32 : capo::DataType::Bf16,
                                    .rows = rows_,
                                    .in = layer_.in,
                                    .out = layer_.out,
                                    .x = (sums_rows ? x_rows_ : x_columns_).view(),
                                    .y = (sums_rows ? y_rows_ : y_columns_).view(),
                                    .w = (kind == Kind::Forward ? w_in_ : w_out_).view(),
                                    .result = result_.at(),
                                    .gradients = reinterpret_cast<void* const*>(gradients_.at())});
  }
  void multiply(Kind kind) const {
    const bool sums_rows = kind == Kind::WeightGradient;
    launch(capo::run::GroupedProduct{
        .kind = kind,
        .rows = rows_,
        .in = layer_.in,
        .out = layer_.out,
        .x = kind == Kind::InputGradient ? result_.at() : x_.at(),
        .y = kind == Kind::Forward ? result_.at() : y_.at(),
        .w = reinterpret_cast<void* const*>((sums_rows ? gradients_ : table_).at())});
  }

  /// The first numbers of the result, in the group of most rows by a skewed spread and in any.
  [[nodiscard]] std::vector<float> some_results(Kind kind) const {
    constexpr std::size_t kCount = 1 << 16;
    const std::size_t width = kind == Kind::WeightGradient ? 4 : 2;
    std::vector<std::byte> bytes(kCount * width);
    stream_.copy(bytes.data(), result_.at(), bytes.size(), "read a result");
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * width, width);
      if (width == 2) bits <<= 16;
      std::memcpy(&values[i], &bits, sizeof bits);
    }
    return values;
  }

 private:
  void write_table(const Buffer& table, const Buffer& of, std::int64_t element_bytes) const {
    std::vector<void*> pointers;
    for (std::int64_t group = 0; group < layer_.groups; ++group) {
      pointers.push_back(of.at(group * layer_.out * layer_.in * element_bytes));
    }
    stream_.copy(table.at(), pointers.data(), table.bytes(), "write pointers");
  }
  template <typename Call>
  void launch(const Call& call) const {
    const capo::gpu::CudaStatus status = capo::gpu::launch(call, stream_.get());
    require(status.ok(), "launch: " + std::to_string(status.code));
  }

  const Stream& stream_;
  Scaling scaling_;
  Layer layer_;
  Buffer sizes_;
  Buffer table_;
  Buffer gradients_;
  Rows rows_;
  Buffer x_;
  Buffer y_;
  Buffer w_;
  Buffer result_;
  CodesBuffer x_columns_;
  CodesBuffer x_rows_;
  CodesBuffer y_columns_;
  CodesBuffer y_rows_;
  CodesBuffer w_in_;
  CodesBuffer w_out_;
};

double error_of(const std::vector<float>& is, const std::vector<float>& should) {
  double off = 0;
  double all = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    off += std::pow(double{is[i]} - double{should[i]}, 2);
    all += std::pow(double{should[i]}, 2);
  }
  return std::sqrt(off / all);
}

// Prints a row, and tells whether its error is small enough.
bool measure(const Stream& stream, const Codings& codings, Kind kind, const std::string& name,
             double operations) {
  codings.multiply(kind);
  const std::vector<float> should = codings.some_results(kind);
  codings.multiply_codes(kind);
  const double error = error_of(codings.some_results(kind), should);
  const Kind rows = kind == Kind::WeightGradient ? Kind::InputGradient : kind;
  const std::vector<double> times =
      medians_of(stream, kRounds,
                 {[&] { codings.multiply(kind); }, [&] { codings.multiply_codes(kind); },
                  [&] {
                    codings.quantize(rows);
                    codings.multiply_codes(kind);
                  },
                  [&] { codings.quantize(rows); }});
  const auto rate = [&](std::size_t i) { return operations / times[i] / 1e9; };
  const bool is_right = error <= 0.06;  // a NaN is not
  std::printf("%-38s %7.0f %7.0f %6.2f %7.0f %6.2f %8.1f  %.1e%s\n", name.c_str(), rate(0), rate(1),
              rate(1) / rate(0), rate(2), rate(2) / rate(0), times[3] * 1e3, error,
              is_right ? "" : "  WRONG");
  std::fflush(stdout);
  return is_right;
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 16384;
  const Stream stream;
  const std::string only = count > 2 ? arguments[2] : "";
  bool is_right = true;
  for (const Scaling scaling : {Scaling::Block, Scaling::Mxfp8}) {
    if (!only.empty() && (only == "block") != (scaling == Scaling::Block)) continue;
    std::printf("%-38s %7s %7s %6s %7s %6s %8s  %s\n",
                scaling == Scaling::Block ? "TFLOP/s, recipe Block" : "TFLOP/s, recipe Mxfp8",
                "bf16", "codes", "ratio", "+ rows", "ratio", "rows, us", "error");
    for (const Layer& layer : kLayers) {
      for (const char* spread : {"bal", "skew"}) {
        const Sizes sizes = sizes_of(spread, rows, layer);
        const Codings codings(stream, scaling, layer, rows, sizes);
        const double operations =
            2 * used_rows(sizes) * static_cast<double>(layer.out) * static_cast<double>(layer.in);
        for (const Kind kind : {Kind::Forward, Kind::InputGradient, Kind::WeightGradient}) {
          constexpr std::array kNames{"forward", "dgrad", "wgrad"};
          const std::string name = std::string(layer.name) + " E" + std::to_string(layer.groups) +
                                   " " + spread + " " + kNames[static_cast<std::size_t>(kind)];
          is_right = measure(stream, codings, kind, name, operations) && is_right;
        }
      }
    }
  }
  return is_right ? 0 : 1;
}
