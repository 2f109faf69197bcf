// How fast products of groups are on this device, beside one cuBLAS call for each group.
//
//   bench_gpu_products [rows]        16384 rows if nothing is said
//
// Layers of mixture-of-experts models, bf16: forward, gradient of the input, and gradient of the
// weights added to fp32; groups of one size, and groups by Zipf's law with an eighth of them empty.
// Peers are captured once and replayed in turns, with the L2 cache flushed before each, and the
// median of the rounds counts. Rates count rows in use only. First every product is compared with
// cuBLAS's: the error is relative, over a sample of the elements, and includes cuBLAS's own.
//
// A second table has gradients of the weights over a quarter of the rows, for four microbatches in
// one call beside four calls of their own. A third has forwards with SwiGLU (fc1) or a bias (fc2)
// as an epilogue beside the calls that it stands for, which have to leave the same bits.
//
// cuBLAS gets the sizes on the host and runs on one stream, with 64 MiB of workspace. Ends with 1
// where an error is too large.

#include "bench/gpu/timing.h"
#include "gpu/kernels/kernels.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace capo::bench;
using capo::run::GroupedProduct;
using Kind = GroupedProduct::Kind;

constexpr int kRounds = 9;
constexpr int kMicrobatches = 4;
constexpr std::size_t kWorkspace = std::size_t{64} << 20;

struct Patterns {
  std::vector<std::byte> rows = random_bytes(2, 1);
  std::vector<std::byte> weights = random_bytes(2, 2);
  std::vector<std::byte> halves_before = random_bytes(2, 3);  // what results hold before
  std::vector<std::byte> floats_before = random_bytes(4, 3);
};

class Cublas {
 public:
  explicit Cublas(const Stream& stream) {
    require(cublasCreate(&handle_) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
    require(cublasSetStream(handle_, stream.get()) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
    require(cublasSetWorkspace(handle_, workspace_.at(), kWorkspace) == CUBLAS_STATUS_SUCCESS,
            "start cuBLAS");
  }
  [[nodiscard]] cublasHandle_t handle() const { return handle_; }

 private:
  Buffer workspace_{kWorkspace};
  cublasHandle_t handle_ = nullptr;
};

// One layer's tensors, and a result of each peer's own.
class Products {
 public:
  Products(const Stream& stream, const Cublas& cublas, const Patterns& patterns, const Layer& layer,
           std::int64_t rows)
      : stream_(stream),
        cublas_(cublas),
        patterns_(patterns),
        layer_(layer),
        rows_(rows),
        x_(bytes_of(rows * layer.in, 2)),
        y_(bytes_of(rows * layer.out, 2)),
        w_(bytes_of(layer.groups * layer.out * layer.in, 2)),
        results_{Buffer(result_bytes()), Buffer(result_bytes())},
        sizes_on_device_(bytes_of(layer.groups, 8)),
        tables_{Buffer(bytes_of(layer.groups, 8)), Buffer(bytes_of(layer.groups, 8))} {
    stream.fill(x_, patterns.rows);
    stream.fill(y_, patterns.rows);
    stream.fill(w_, patterns.weights);
  }

  void use(const Sizes& sizes, Kind kind) {
    sizes_ = sizes;
    kind_ = kind;
    stream_.copy(sizes_on_device_.at(), sizes.data(), sizes_on_device_.bytes(), "write sizes");
    for (const int peer : {0, 1}) {
      std::vector<void*> table;
      for (std::int64_t group = 0; group < layer_.groups; ++group) {
        table.push_back(weight(group, peer));
      }
      stream_.copy(tables_[static_cast<std::size_t>(peer)].at(), table.data(),
                   table.size() * sizeof(void*), "write pointers");
      stream_.fill(result(peer), kind == Kind::WeightGradient ? patterns_.floats_before
                                                              : patterns_.halves_before);
    }
  }

  void launch_ours() const { launch(call_of_ours()); }

  /// Gradients of the weights, of kMicrobatches that each have these sizes.
  void launch_in_one() const {
    GroupedProduct call = call_of_microbatch(0, 0);
    for (int at = 1; at < kMicrobatches; ++at) {
      const GroupedProduct further = call_of_microbatch(at, 0);
      call.batches[call.further++] = {
          .x = further.x, .y = further.y, .count = further.rows.count, .sizes = further.rows.sizes};
    }
    launch(call);
  }
  void launch_apart() const {
    for (int at = 0; at < kMicrobatches; ++at) launch(call_of_microbatch(at, 1));
  }

  /// A forward with an epilogue; its parts launch what it stands for.
  void launch_with_epilogue() const { launch(call_with_epilogue(0)); }
  void launch_parts() const {
    capo::run::for_each_part(call_with_epilogue(1), [&](const auto& part) { launch(part); });
  }

  void launch_cublas() const {
    std::int64_t first = 0;
    for (std::int64_t group = 0; group < layer_.groups; ++group) {
      const std::int64_t size = sizes_[static_cast<std::size_t>(group)];
      if (size > 0) launch_cublas(group, first, size);
      first += size;
    }
  }

  /// |ours - cuBLAS's| / |cuBLAS's| over a sample of the result.
  [[nodiscard]] double error() const {
    constexpr std::int64_t kChunk = 4096;
    constexpr std::int64_t kChunks = 512;
    const bool is_weight = kind_ == Kind::WeightGradient;
    const std::int64_t used = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    const std::int64_t count = is_weight ? layer_.groups * layer_.out * layer_.in
                                         : used * (kind_ == Kind::Forward ? layer_.out : layer_.in);
    double off = 0;
    double all = 0;
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
      const std::int64_t first = (count - kChunk) / kChunks * chunk;
      const std::vector<double> ours = numbers(result(0), first, kChunk);
      const std::vector<double> theirs = numbers(result(1), first, kChunk);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        off += (ours[i] - theirs[i]) * (ours[i] - theirs[i]);
        all += theirs[i] * theirs[i];
      }
    }
    return std::sqrt(off / all);
  }

 private:
  static std::size_t bytes_of(std::int64_t elements, std::int64_t element_bytes) {
    return static_cast<std::size_t>(elements * element_bytes);
  }
  [[nodiscard]] std::size_t result_bytes() const {
    return std::max({bytes_of(rows_ * layer_.in, 2), bytes_of(rows_ * layer_.out, 3),
                     bytes_of(layer_.groups * layer_.out * layer_.in, 4)});
  }
  [[nodiscard]] const Buffer& result(int peer) const {
    return results_[static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] std::byte* weight(std::int64_t group, int peer) const {
    const std::int64_t first = group * layer_.out * layer_.in;
    return kind_ == Kind::WeightGradient ? result(peer).at(first * 4) : w_.at(first * 2);
  }

  [[nodiscard]] GroupedProduct call_of_ours() const {
    return {.kind = kind_,
            .type = capo::DataType::Bf16,
            .gradient_type = capo::DataType::Fp32,
            .write =
                kind_ == Kind::WeightGradient ? capo::run::Write::Add : capo::run::Write::Overwrite,
            .rows = {.count = rows_,
                     .groups = layer_.groups,
                     .sizes = reinterpret_cast<const std::int64_t*>(sizes_on_device_.at())},
            .in = layer_.in,
            .out = layer_.out,
            .x = kind_ == Kind::InputGradient ? result(0).at() : x_.at(),
            .y = kind_ == Kind::Forward ? result(0).at() : y_.at(),
            .w = reinterpret_cast<void* const*>(tables_[0].at())};
  }
  // Each microbatch has its own part of the rows.
  [[nodiscard]] GroupedProduct call_of_microbatch(int number, int peer) const {
    GroupedProduct call = call_of_ours();
    const std::int64_t rows = rows_ / kMicrobatches;
    call.rows.count = rows;
    call.x = x_.at(number * rows * layer_.in * 2);
    call.y = y_.at(number * rows * layer_.out * 2);
    call.w = reinterpret_cast<void* const*>(tables_[static_cast<std::size_t>(peer)].at());
    return call;
  }
  // The result of SwiGLU comes first, so that it is in the sample. The weights stand for biases.
  [[nodiscard]] GroupedProduct call_with_epilogue(int peer) const {
    GroupedProduct call = call_of_ours();
    call.y = result(peer).at(rows_ * layer_.out);
    if (is_gated(layer_)) {
      call.epilogue.gated = result(peer).at();
    } else {
      call.epilogue.bias = call.w;
    }
    return call;
  }
  template <typename Call>
  void launch(const Call& call) const {
    const capo::gpu::CudaStatus status = capo::gpu::launch(call, stream_.get());
    require(status.ok(), "launch: " + std::to_string(status.code));
  }

  void launch_cublas(std::int64_t group, std::int64_t first, std::int64_t size) const {
    const std::byte* x = x_.at(first * layer_.in * 2);
    const std::byte* y = y_.at(first * layer_.out * 2);
    std::byte* w = weight(group, 1);
    if (kind_ == Kind::Forward) {
      multiply(CUBLAS_OP_T, CUBLAS_OP_N, {layer_.out, size, layer_.in}, w, layer_.in, x, layer_.in,
               result(1).at(first * layer_.out * 2), layer_.out);
    } else if (kind_ == Kind::InputGradient) {
      multiply(CUBLAS_OP_N, CUBLAS_OP_N, {layer_.in, size, layer_.out}, w, layer_.in, y, layer_.out,
               result(1).at(first * layer_.in * 2), layer_.in);
    } else {
      multiply(CUBLAS_OP_N, CUBLAS_OP_T, {layer_.in, layer_.out, size}, x, layer_.in, y, layer_.out,
               w, layer_.in);
    }
  }
  // By columns, as cuBLAS sees matrices: each of ours is its transpose.
  void multiply(cublasOperation_t a_turn, cublasOperation_t b_turn,
                const std::array<std::int64_t, 3>& mnk, const void* a, std::int64_t a_step,
                const void* b, std::int64_t b_step, void* c, std::int64_t c_step) const {
    const bool is_weight = kind_ == Kind::WeightGradient;
    const float alpha = 1;
    const float beta = is_weight ? 1 : 0;
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    require(
        cublasGemmEx(cublas_.handle(), a_turn, b_turn, whole(mnk[0]), whole(mnk[1]), whole(mnk[2]),
                     &alpha, a, CUDA_R_16BF, whole(a_step), b, CUDA_R_16BF, whole(b_step), &beta, c,
                     is_weight ? CUDA_R_32F : CUDA_R_16BF, whole(c_step), CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS,
        "multiply with cuBLAS");
  }

  [[nodiscard]] std::vector<double> numbers(const Buffer& from, std::int64_t first,
                                            std::int64_t count) const {
    const std::int64_t width = kind_ == Kind::WeightGradient ? 4 : 2;
    std::vector<std::byte> bytes(bytes_of(count, width));
    stream_.copy(bytes.data(), from.at(first * width), bytes.size(), "read a result");
    std::vector<double> values;
    for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(width)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, static_cast<std::size_t>(width));
      if (width == 2) bits <<= 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      values.push_back(double{value});
    }
    return values;
  }

  const Stream& stream_;
  const Cublas& cublas_;
  const Patterns& patterns_;
  Layer layer_;
  std::int64_t rows_;
  Buffer x_;
  Buffer y_;
  Buffer w_;
  std::array<Buffer, 2> results_;  ///< ours, cuBLAS's
  Buffer sizes_on_device_;
  std::array<Buffer, 2> tables_;
  Sizes sizes_;
  Kind kind_ = Kind::Forward;
};

enum class Verdict : std::uint8_t { Right, Wrong };

// Two ways to make one product race each other.
struct Raced {
  std::function<void()> ours;
  std::function<void()> peers;
};

Verdict measure(const Stream& stream, const Products& products, const Raced& raced,
                const std::string& name, double operations, double most_error) {
  const cudaGraphExec_t ours = stream.captured(raced.ours);
  const cudaGraphExec_t peer = stream.captured(raced.peers);
  static_cast<void>(stream.time(ours));
  static_cast<void>(stream.time(peer));
  const double error = products.error();
  std::vector<double> our_times;
  std::vector<double> peer_times;
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(stream.time(ours));
    peer_times.push_back(stream.time(peer));
  }
  require(cudaGraphExecDestroy(ours), "destroy a graph");
  require(cudaGraphExecDestroy(peer), "destroy a graph");
  const double our_rate = operations / capo::median(our_times) / 1e9;
  const double peer_rate = operations / capo::median(peer_times) / 1e9;
  const bool is_right = error <= most_error;  // a NaN is not
  std::printf("%-38s %7.0f %7.0f %6.2f  %.1e%s\n", name.c_str(), our_rate, peer_rate,
              our_rate / peer_rate, error, is_right ? "" : "  WRONG");
  std::fflush(stdout);
  return is_right ? Verdict::Right : Verdict::Wrong;
}

// Runs one table of all layers, of `make(layer, spread)`.
template <typename Make>
Verdict measure_all(const char* ours, const char* peers, Make make) {
  Verdict verdict = Verdict::Right;
  std::printf("%-38s %7s %7s %6s  %s\n", "TFLOP/s", ours, peers, "ratio", "error");
  for (const Layer& layer : kLayers) {
    for (const char* spread : {"bal", "skew"}) {
      if (make(layer, spread) == Verdict::Wrong) verdict = Verdict::Wrong;
    }
  }
  return verdict;
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 16384;
  const Stream stream;
  const Cublas cublas(stream);
  const Patterns patterns;
  const auto name_of = [](const Layer& layer, const char* spread, const char* pass) {
    return std::string(layer.name) + " E" + std::to_string(layer.groups) + " " + spread + " " +
           pass;
  };
  const Verdict beside_cublas =
      measure_all("ours", "cuBLAS", [&](const Layer& layer, const char* spread) {
        Products products(stream, cublas, patterns, layer, rows);
        const Sizes sizes = sizes_of(spread, rows, layer);
        const double operations =
            2 * used_rows(sizes) * static_cast<double>(layer.out) * static_cast<double>(layer.in);
        Verdict verdict = Verdict::Right;
        for (const Kind kind : {Kind::Forward, Kind::InputGradient, Kind::WeightGradient}) {
          constexpr std::array kNames{"forward", "dgrad", "wgrad += fp32"};
          products.use(sizes, kind);
          const Raced raced{[&] { products.launch_ours(); }, [&] { products.launch_cublas(); }};
          const double most_error = kind == Kind::WeightGradient ? 1e-4 : 5e-3;
          if (measure(stream, products, raced,
                      name_of(layer, spread, kNames[static_cast<std::size_t>(kind)]), operations,
                      most_error) == Verdict::Wrong) {
            verdict = Verdict::Wrong;
          }
        }
        return verdict;
      });
  const Verdict in_one =
      measure_all("in one", "apart", [&](const Layer& layer, const char* spread) {
        Products products(stream, cublas, patterns, layer, rows);
        const Sizes sizes = sizes_of(spread, rows / kMicrobatches, layer);
        products.use(sizes, Kind::WeightGradient);
        const Raced raced{[&] { products.launch_in_one(); }, [&] { products.launch_apart(); }};
        const double operations = 2 * kMicrobatches * used_rows(sizes) *
                                  static_cast<double>(layer.out) * static_cast<double>(layer.in);
        return measure(stream, products, raced, name_of(layer, spread, "4 x wgrad += fp32"),
                       operations, 1e-4);
      });
  const Verdict with_epilogue =
      measure_all("in one", "apart", [&](const Layer& layer, const char* spread) {
        Products products(stream, cublas, patterns, layer, rows);
        const Sizes sizes = sizes_of(spread, rows, layer);
        products.use(sizes, Kind::Forward);
        const Raced raced{[&] { products.launch_with_epilogue(); },
                          [&] { products.launch_parts(); }};
        const double operations =
            2 * used_rows(sizes) * static_cast<double>(layer.out) * static_cast<double>(layer.in);
        return measure(
            stream, products, raced,
            name_of(layer, spread, is_gated(layer) ? "forward, SwiGLU" : "forward, bias"),
            operations, 0);
      });
  const bool is_right = beside_cublas == Verdict::Right && in_one == Verdict::Right &&
                        with_epilogue == Verdict::Right;
  return is_right ? 0 : 1;
}
