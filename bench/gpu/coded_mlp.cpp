// How fast what stands between the two products of an MLP becomes codes on this device, and how
// fast it is with the product that reads it, beside the same in bf16.
//
//   bench_gpu_coded_mlp [rows] [block|mxfp8]     16384 rows and both recipes if nothing is said
//
// The layers are those of timing.h that are fc1. Forward it is SwiGLU of fc1's output and the
// product of fc2; backward the gradient of SwiGLU and the gradient of fc1's input, with `+ p` where
// a router wants the gradients of its probabilities. All times are in microseconds:
//
//   bf16    nothing is quantized; of a forward the faster of SwiGLU as a call and as an epilogue of
//           fc1, of which the time counts that fc1 takes longer by
//   parts   SwiGLU or its gradient is written, then quantized both ways, in calls of their own
//   fused   one call quantizes both ways as it makes them; the ratio is that of bf16 to it
//
// Then parts and fused without the product, with the rate of the bytes that each has to move.

#include "bench/gpu/codes.h"
#include "bench/gpu/timing.h"
#include "gpu/kernels/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace capo::bench;
using capo::run::Rows;
using capo::run::Scaling;
using Kind = capo::run::GroupedProduct::Kind;

constexpr int kRounds = 9;

/// This runs the calls between the products of an MLP, and the products that read their result. Its
/// layer is fc1.
class Between {
 public:
  Between(const Stream& stream, Scaling scaling, const Layer& layer, std::int64_t rows,
          const Sizes& sizes)
      : stream_(stream),
        scaling_(scaling),
        groups_(layer.groups),
        hidden_(layer.in),
        wide_(layer.out),
        sizes_(bytes_of(layer.groups, 8)),
        rows_{.count = rows,
              .groups = layer.groups,
              .sizes = reinterpret_cast<const std::int64_t*>(sizes_.at())},
        x_(bytes_of(rows * hidden_, 2)),
        middle_(bytes_of(rows * wide_, 2)),
        dmiddle_(bytes_of(rows * wide_, 2)),
        active_(bytes_of(rows * wide_ / 2, 2)),
        dactive_(bytes_of(rows * wide_ / 2, 2)),
        y_(bytes_of(rows * hidden_, 2)),
        probabilities_(bytes_of(rows, 4)),
        dprobabilities_(bytes_of(rows, 4)),
        first_(bytes_of(groups_ * wide_ * hidden_, 2)),
        second_(bytes_of(groups_ * wide_ / 2 * hidden_, 2)),
        first_table_(bytes_of(groups_, 8)),
        second_table_(bytes_of(groups_, 8)),
        along_columns_(scaling, 1, rows, wide_, 1),
        along_rows_(scaling, 1, wide_, depth_of(rows_), 1),
        first_codes_(scaling, groups_, hidden_, wide_, block_width(scaling)),
        second_codes_(scaling, groups_, hidden_, wide_ / 2, block_width(scaling)) {
    std::uint32_t seed = 1;
    for (const Buffer* buffer : {&x_, &middle_, &dactive_, &first_, &second_}) {
      stream.fill(*buffer, random_bytes(2, seed++));
    }
    stream.fill(probabilities_, random_bytes(4, seed));
    stream.copy(sizes_.at(), sizes.data(), sizes_.bytes(), "write sizes");
    write_table(first_table_, first_);
    write_table(second_table_, second_);
    launch(capo::run::QuantizeWeights{.scaling = scaling,
                                      .groups = groups_,
                                      .in = hidden_,
                                      .out = wide_,
                                      .w = table(first_table_),
                                      .along_out = first_codes_.view()});
    launch(capo::run::QuantizeWeights{.scaling = scaling,
                                      .groups = groups_,
                                      .in = wide_ / 2,
                                      .out = hidden_,
                                      .w = table(second_table_),
                                      .along_in = second_codes_.view()});
  }

  enum class Gated : std::uint8_t { Here, AsEpilogue };
  void multiply_first(Gated gated) const {
    capo::run::Epilogue epilogue;
    if (gated == Gated::AsEpilogue) {
      epilogue = {.gated = active_.at(), .probabilities = probabilities()};
    }
    launch(capo::run::GroupedProduct{.rows = rows_,
                                     .in = hidden_,
                                     .out = wide_,
                                     .x = x_.at(),
                                     .y = middle_.at(),
                                     .w = table(first_table_),
                                     .epilogue = epilogue});
  }
  /// The product that reads what stands between, in bf16 and in codes.
  void multiply(Kind kind) const {
    const bool forward = kind == Kind::Forward;
    launch(capo::run::GroupedProduct{.kind = kind,
                                     .rows = rows_,
                                     .in = forward ? wide_ / 2 : hidden_,
                                     .out = forward ? hidden_ : wide_,
                                     .x = forward ? active_.at() : y_.at(),
                                     .y = forward ? y_.at() : dmiddle_.at(),
                                     .w = table(forward ? second_table_ : first_table_)});
  }
  void multiply_codes(Kind kind) const {
    const bool forward = kind == Kind::Forward;
    launch(capo::run::ScaledProduct{.kind = kind,
                                    .scaling = scaling_,
                                    .rows = rows_,
                                    .in = forward ? wide_ / 2 : hidden_,
                                    .out = forward ? hidden_ : wide_,
                                    .x = along_columns_.view(),
                                    .y = along_columns_.view(),
                                    .w = (forward ? second_codes_ : first_codes_).view(),
                                    .result = y_.at()});
  }
  void gate() const {
    launch(capo::run::SwiGlu{.rows = rows_,
                             .columns = wide_ / 2,
                             .x = middle_.at(),
                             .probabilities = probabilities(),
                             .y = active_.at()});
  }
  enum class Wanted : std::uint8_t { Rows, Probabilities, Both };
  void find_gradient(Wanted wanted) const {
    launch(capo::run::SwiGluGradient{
        .rows = rows_,
        .columns = wide_ / 2,
        .x = middle_.at(),
        .probabilities = probabilities(),
        .dy = dactive_.at(),
        .dx = wanted == Wanted::Probabilities ? nullptr : dmiddle_.at(),
        .dprobabilities =
            wanted == Wanted::Rows ? nullptr : reinterpret_cast<float*>(dprobabilities_.at())});
  }
  void quantize(Kind kind) const {
    const bool forward = kind == Kind::Forward;
    quantize(forward ? wide_ / 2 : wide_, (forward ? active_ : dmiddle_).at(), {});
  }
  void make_and_quantize(Kind kind) const {
    using capo::run::RowsMade;
    const bool forward = kind == Kind::Forward;
    quantize(forward ? wide_ / 2 : wide_, middle_.at(),
             {.by = forward ? RowsMade::By::SwiGlu : RowsMade::By::SwiGluGradient,
              .probabilities = probabilities(),
              .dy = dactive_.at()});
  }

 private:
  void quantize(std::int64_t columns, const void* x, const capo::run::RowsMade& made) const {
    launch(capo::run::QuantizeRows{.scaling = scaling_,
                                   .rows = rows_,
                                   .columns = columns,
                                   .x = x,
                                   .made = made,
                                   .along_columns = along_columns_.view(),
                                   .along_rows = along_rows_.view()});
  }
  void write_table(const Buffer& to, const Buffer& of) const {
    std::vector<void*> pointers;
    const auto step = static_cast<std::int64_t>(of.bytes()) / groups_;
    for (std::int64_t group = 0; group < groups_; ++group) pointers.push_back(of.at(group * step));
    stream_.copy(to.at(), pointers.data(), to.bytes(), "write pointers");
  }
  [[nodiscard]] const float* probabilities() const {
    return reinterpret_cast<const float*>(probabilities_.at());
  }
  [[nodiscard]] static void* const* table(const Buffer& of) {
    return reinterpret_cast<void* const*>(of.at());
  }
  template <typename Call>
  void launch(const Call& call) const {
    const capo::gpu::CudaStatus status = capo::gpu::launch(call, stream_.get());
    require(status.ok(), "launch: " + std::to_string(status.code));
  }

  const Stream& stream_;
  Scaling scaling_;
  std::int64_t groups_;
  std::int64_t hidden_;
  std::int64_t wide_;  ///< columns of gates and linear parts together
  Buffer sizes_;
  Rows rows_;
  Buffer x_, middle_, dmiddle_, active_, dactive_, y_;
  Buffer probabilities_, dprobabilities_;
  Buffer first_, second_, first_table_, second_table_;
  CodesBuffer along_columns_, along_rows_;
  CodesBuffer first_codes_, second_codes_;
};

/// Bytes of a pass over so many numbers that are made: those that it reads and writes for each.
struct Moved {
  double parts = 0;
  double fused = 0;
};

void print_between(const std::string& name, double bf16, const std::vector<double>& times,
                   const Moved& moved) {
  const auto rate = [](double bytes, double milliseconds) { return bytes / milliseconds / 1e9; };
  std::printf("%-38s %8.1f %8.1f %8.1f %6.2f %8.1f %6.2f %8.1f %6.2f %6.2f\n", name.c_str(),
              bf16 * 1e3, times[1] * 1e3, times[2] * 1e3, bf16 / times[2], times[3] * 1e3,
              rate(moved.parts, times[3]), times[4] * 1e3, rate(moved.fused, times[4]),
              times[3] / times[4]);
  std::fflush(stdout);
}

// Codes are written both ways, and a scale for each block of them.
double bytes_of_codes(Scaling scaling) {
  return 2 +
         2 * static_cast<double>(scale_bytes(scaling)) / static_cast<double>(block_depth(scaling));
}

void measure_between(const Stream& stream, const Between& between, Scaling scaling,
                     const std::string& name, double numbers) {
  using Wanted = Between::Wanted;
  const Kind forward = Kind::Forward;
  const auto make_parts = [&] {
    between.gate();
    between.quantize(forward);
  };
  const std::vector<double> times = medians_of(
      stream, kRounds,
      {[&] {
         between.gate();
         between.multiply(forward);
       },
       [&] {
         make_parts();
         between.multiply_codes(forward);
       },
       [&] {
         between.make_and_quantize(forward);
         between.multiply_codes(forward);
       },
       make_parts, [&] { between.make_and_quantize(forward); },
       [&] { between.multiply_first(Between::Gated::AsEpilogue); },
       [&] { between.multiply_first(Between::Gated::Here); }, [&] { between.multiply(forward); }});
  const double as_epilogue = times[5] - times[6] + times[7];
  const double codes = bytes_of_codes(scaling);
  print_between(name + " SwiGLU, fc2", std::min(times[0], as_epilogue), times,
                {.parts = numbers / 2 * (4 + 2 + 2 + codes), .fused = numbers / 2 * (4 + codes)});
  for (const Wanted wanted : {Wanted::Rows, Wanted::Both}) {
    const bool has_router = wanted == Wanted::Both;
    const Kind kind = Kind::InputGradient;
    const auto make = [&] {
      if (has_router) between.find_gradient(Wanted::Probabilities);
      between.make_and_quantize(kind);
    };
    const auto make_gradient_parts = [&] {
      between.find_gradient(wanted);
      between.quantize(kind);
    };
    const std::vector<double> of_gradient = medians_of(stream, kRounds,
                                                       {[&] {
                                                          between.find_gradient(wanted);
                                                          between.multiply(kind);
                                                        },
                                                        [&] {
                                                          make_gradient_parts();
                                                          between.multiply_codes(kind);
                                                        },
                                                        [&] {
                                                          make();
                                                          between.multiply_codes(kind);
                                                        },
                                                        make_gradient_parts, make});
    print_between(name + (has_router ? " dSwiGLU, dgrad + p" : " dSwiGLU, dgrad"), of_gradient[0],
                  of_gradient,
                  {.parts = numbers * (3 + 2 + 2 + codes),
                   .fused = numbers * (3 + (has_router ? 3 : 0) + codes)});
  }
}

void measure_all_between(const Stream& stream, Scaling scaling, std::int64_t rows) {
  std::printf("%-38s %8s %8s %8s %6s %8s %6s %8s %6s %6s\n",
              scaling == Scaling::Block ? "us, recipe Block" : "us, recipe Mxfp8", "bf16", "parts",
              "fused", "ratio", "parts", "TB/s", "fused", "TB/s", "ratio");
  for (const Layer& layer : kLayers) {
    if (!is_gated(layer)) continue;
    for (const char* spread : {"bal", "skew"}) {
      const Sizes sizes = sizes_of(spread, rows, layer);
      const Between between(stream, scaling, layer, rows, sizes);
      const std::string name = std::string(layer.name).substr(0, std::strlen(layer.name) - 4) +
                               " E" + std::to_string(layer.groups) + " " + spread;
      measure_between(stream, between, scaling, name,
                      used_rows(sizes) * static_cast<double>(layer.out));
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 16384;
  const Stream stream;
  const std::string only = count > 2 ? arguments[2] : "";
  for (const Scaling scaling : {Scaling::Block, Scaling::Mxfp8}) {
    if (!only.empty() && (only == "block") != (scaling == Scaling::Block)) continue;
    measure_all_between(stream, scaling, rows);
  }
  return 0;
}
