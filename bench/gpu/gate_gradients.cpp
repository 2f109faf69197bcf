// How fast the gradient of fc2's input goes on to SwiGLU's gradients on this device, in one call
// and in the calls that it stands for.
//
//   bench_gpu_gate_gradients [rows]      16384 rows if nothing is said
//
// The layers are those of timing.h that are fc2, with `+ p` where a router wants the gradients of
// its probabilities. All times are in microseconds, with nothing in the cache:
//
//   product   the gradient of fc2's input alone
//   apart     that and SwiGLU's gradients, in calls of their own
//   in one    both in one call; the ratio is that of apart to it
//
// Both have to leave the same bits of all gradients, in rows in use. Ends with 1 where they do not.

#include "bench/gpu/timing.h"
#include "gpu/kernels/kernels.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace capo::bench;
using capo::run::GroupedProduct;
using capo::run::Rows;

constexpr int kRounds = 9;

// Both ways write these.
struct Written {
  Written(std::int64_t rows, std::int64_t columns)
      : x(static_cast<std::size_t>(rows * columns * 2)),
        dgates(static_cast<std::size_t>(rows * columns * 4)),
        dprobabilities(static_cast<std::size_t>(rows * 4)) {}

  Buffer x;
  Buffer dgates;
  Buffer dprobabilities;
};

class Layers {
 public:
  Layers(const Stream& stream, const Layer& layer, std::int64_t rows, const Sizes& sizes)
      : stream_(stream),
        layer_(layer),
        sizes_(bytes_of(layer.groups, 8)),
        table_(bytes_of(layer.groups, 8)),
        differs_(4),
        rows_{.count = rows,
              .groups = layer.groups,
              .sizes = reinterpret_cast<const std::int64_t*>(sizes_.at())},
        y_(bytes_of(rows * layer.out, 2)),
        gates_(bytes_of(rows * layer.in, 4)),
        w_(bytes_of(layer.groups * layer.out * layer.in, 2)),
        probabilities_(bytes_of(rows, 4)),
        apart_(rows, layer.in),
        in_one_(rows, layer.in) {
    stream.fill(y_, random_bytes(2, 1));
    stream.fill(gates_, random_bytes(2, 2));
    stream.fill(w_, random_bytes(2, 3));
    stream.fill(probabilities_, random_bytes(4, 4));
    stream.copy(sizes_.at(), sizes.data(), sizes_.bytes(), "write sizes");
    std::vector<void*> pointers;
    for (std::int64_t group = 0; group < layer.groups; ++group) {
      pointers.push_back(w_.at(group * layer.out * layer.in * 2));
    }
    stream.copy(table_.at(), pointers.data(), table_.bytes(), "write pointers");
  }

  enum class Wanted : std::uint8_t { Gates, Probabilities };
  void launch_product() const {
    GroupedProduct call = call_into(apart_, Wanted::Gates);
    call.epilogue = {};
    launch(call);
  }
  void launch_apart(Wanted wanted) const {
    capo::run::for_each_part(call_into(apart_, wanted), [&](const auto& part) { launch(part); });
  }
  void launch_in_one(Wanted wanted) const { launch(call_into(in_one_, wanted)); }

  /// Whether both have left the same.
  [[nodiscard]] bool are_equal(Wanted wanted) const {
    std::int32_t differs = 0;
    stream_.copy(differs_.at(), &differs, sizeof differs, "write a word");
    compare(apart_.dgates, in_one_.dgates, layer_.in * 4);
    if (wanted == Wanted::Probabilities) compare(apart_.dprobabilities, in_one_.dprobabilities, 4);
    stream_.copy(&differs, differs_.at(), sizeof differs, "read a word");
    return differs == 0;
  }

 private:
  static std::size_t bytes_of(std::int64_t elements, std::int64_t element_bytes) {
    return static_cast<std::size_t>(elements * element_bytes);
  }
  [[nodiscard]] GroupedProduct call_into(const Written& to, Wanted wanted) const {
    const bool has_router = wanted == Wanted::Probabilities;
    return {
        .kind = GroupedProduct::Kind::InputGradient,
        .rows = rows_,
        .in = layer_.in,
        .out = layer_.out,
        .x = to.x.at(),
        .y = y_.at(),
        .w = reinterpret_cast<void* const*>(table_.at()),
        .epilogue = {.probabilities =
                         has_router ? reinterpret_cast<const float*>(probabilities_.at()) : nullptr,
                     .gates = gates_.at(),
                     .dgates = to.dgates.at(),
                     .dprobabilities =
                         has_router ? reinterpret_cast<float*>(to.dprobabilities.at()) : nullptr}};
  }
  void compare(const Buffer& a, const Buffer& b, std::int64_t row_bytes) const {
    launch(capo::run::Differ{.rows = rows_,
                             .row_bytes = row_bytes,
                             .a = a.at(),
                             .b = b.at(),
                             .differs = reinterpret_cast<std::int32_t*>(differs_.at())});
  }
  template <typename Call>
  void launch(const Call& call) const {
    const capo::gpu::CudaStatus status = capo::gpu::launch(call, stream_.get());
    require(status.ok(), "launch: " + std::to_string(status.code));
  }

  const Stream& stream_;
  Layer layer_;
  Buffer sizes_, table_, differs_;
  Rows rows_;
  Buffer y_, gates_, w_, probabilities_;
  Written apart_, in_one_;
};

enum class Verdict : std::uint8_t { Same, Different };

Verdict measure(const Stream& stream, const Layers& layers, Layers::Wanted wanted,
                const std::string& name) {
  const std::vector<double> times =
      medians_of(stream, kRounds,
                 {[&] { layers.launch_product(); }, [&] { layers.launch_apart(wanted); },
                  [&] { layers.launch_in_one(wanted); }});
  const bool are_equal = layers.are_equal(wanted);
  std::printf("%-30s %8.1f %8.1f %8.1f %6.2f%s\n", name.c_str(), times[0] * 1e3, times[1] * 1e3,
              times[2] * 1e3, times[1] / times[2], are_equal ? "" : "  DIFFERENT");
  std::fflush(stdout);
  return are_equal ? Verdict::Same : Verdict::Different;
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 16384;
  const Stream stream;
  Verdict verdict = Verdict::Same;
  std::printf("%-30s %8s %8s %8s %6s\n", "us", "product", "apart", "in one", "ratio");
  for (const Layer& layer : kLayers) {
    if (is_gated(layer)) continue;
    for (const char* spread : {"bal", "skew"}) {
      const Layers layers(stream, layer, rows, sizes_of(spread, rows, layer));
      const std::string name =
          std::string(layer.name) + " E" + std::to_string(layer.groups) + " " + spread;
      using enum Layers::Wanted;
      for (const Layers::Wanted wanted : {Gates, Probabilities}) {
        const std::string of = name + (wanted == Probabilities ? " + p" : "");
        if (measure(stream, layers, wanted, of) == Verdict::Different) {
          verdict = Verdict::Different;
        }
      }
    }
  }
  return verdict == Verdict::Same ? 0 : 1;
}
