// A gradient of an input that goes on to SwiGLU's gradients, in one kernel and in its parts: both
// leave the same to the bit, but for the result of the product itself.

#include "tests/gpu/twins.h"

#include <fmt/format.h>

namespace capo::gpu {
namespace {

using run::GroupedProduct;

struct Shape {
  Sizes sizes;
  std::int64_t count = 0;
  std::int64_t in = 0;  ///< columns of SwiGLU
  std::int64_t out = 0;
  std::size_t second_w_past = 0;  ///< bytes past a multiple of 256
};

struct Wanted {
  bool probabilities = true;
  bool dprobabilities = true;
  bool in_place = true;  ///< gradients take the places of gates
};

// Rows behind those in use are NaN, where somebody would read them.
class Gates {
 public:
  Gates(const Shape& shape, DataType type, Wanted wanted)
      : shape_(shape), type_(type), wanted_(wanted) {
    const std::int64_t used = sum_of(shape.sizes);
    Tensor y = at_random(type, shape.count * shape.out, 1);
    y.spoil_from(used * shape.out);
    Tensor gates = at_random(type, shape.count * 2 * shape.in, 2);
    for (std::int64_t i = 0; i < gates.count(); ++i) gates.set(i, gates.value(i) * 6);
    gates.spoil_from(used * 2 * shape.in);
    y_ = twins_.add(y);
    gates_ = twins_.add(gates);
    x_ = twins_.add(at_random(type, shape.count * shape.in, 3));
    dgates_ = wanted.in_place ? gates_ : twins_.add(at_random(type, shape.count * 2 * shape.in, 4));
    probabilities_ = twins_.add(at_random(DataType::Fp32, shape.count, 5));
    dprobabilities_ = twins_.add(at_random(DataType::Fp32, shape.count, 6));
    std::vector<Slot> w;
    for (std::size_t group = 0; group < shape.sizes.size(); ++group) {
      const auto seed = static_cast<std::uint32_t>(7 + group);
      w.push_back(twins_.add(at_random(type, shape.in * shape.out, seed),
                             group == 1 ? shape.second_w_past : 0));
    }
    sizes_ = twins_.add_numbers(shape.sizes);
    table_ = twins_.add_table(w);
  }

  [[nodiscard]] MakeCall call() const {
    return [this](const Memory& m) {
      return GroupedProduct{
          .kind = GroupedProduct::Kind::InputGradient,
          .type = type_,
          .rows = {.count = shape_.count,
                   .groups = static_cast<std::int64_t>(shape_.sizes.size()),
                   .sizes = m.as<std::int64_t>(sizes_)},
          .in = shape_.in,
          .out = shape_.out,
          .x = m.at(x_),
          .y = m.at(y_),
          .w = m.as<void*>(table_),
          .epilogue = {
              .probabilities = wanted_.probabilities ? m.as<float>(probabilities_) : nullptr,
              .gates = m.at(gates_),
              .dgates = m.at(dgates_),
              .dprobabilities = wanted_.dprobabilities ? m.as<float>(dprobabilities_) : nullptr}};
    };
  }
  [[nodiscard]] std::vector<Part> written() const {
    const std::int64_t rows = sum_of(shape_.sizes);
    std::vector<Part> parts{first_of(dgates_, rows * 2 * shape_.in)};
    parts.push_back({.slot = x_, .first = 0, .count = rows * shape_.in, .value = Part::Value::Any});
    // The host rounds a few results to their neighbours, as its products add in another order, and
    // of few columns each counts.
    if (wanted_.dprobabilities) {
      using enum Part::Value;
      parts.push_back(
          {.slot = dprobabilities_, .count = rows, .value = shape_.in < 256 ? Any : Coarse});
    }
    return parts;
  }
  void check() {
    SCOPED_TRACE(fmt::format("in {}, out {}, {}, probabilities {}, their gradients {}, in place {}",
                             shape_.in, shape_.out, name_of(type_), wanted_.probabilities,
                             wanted_.dprobabilities, wanted_.in_place));
    twins_.expect_same_in_parts(call(), written(), x_);
  }
  [[nodiscard]] Twins& twins() { return twins_; }
  void change_sizes(const Sizes& sizes) {
    shape_.sizes = sizes;
    twins_.change(sizes_, sizes);
  }

 private:
  Shape shape_;
  DataType type_;
  Wanted wanted_;
  Twins twins_;
  Slot y_, gates_, x_, dgates_, probabilities_, dprobabilities_, sizes_, table_;
};

// Checks all that there is to want, and then that nothing need be wanted of probabilities.
void check_both(const Shape& shape, DataType type) {
  Gates(shape, type, {}).check();
  Gates(shape, type, {.probabilities = false, .dprobabilities = false, .in_place = false}).check();
}

void check_all(const Shape& shape, DataType type) {
  check_both(shape, type);
  Gates(shape, type, {.dprobabilities = false}).check();
  Gates(shape, type, {.probabilities = false, .in_place = false}).check();
}

using GateGradients = Kernels;

TEST_F(GateGradients, OfFewTilesAndOddSizes) {
  for (const DataType type : kTypes) {
    check_all({.sizes = {5, 0, 9, 2}, .count = 21, .in = 19, .out = 14}, type);
    check_all({.sizes = {1, 1}, .count = 2, .in = 8, .out = 16}, type);
    check_all({.sizes = {5, 0, 9, 2}, .count = 21, .in = 264, .out = 24}, type);
  }
}

// Blocks have several tiles: columns end eight behind a tile, with one, and within one.
TEST_F(GateGradients, OfManyTiles) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_all({.sizes = {130, 0, 3, 257, 1}, .count = 400, .in = 16904, .out = 24}, type);
    check_both({.sizes = {0, 128, 64, 0, 63}, .count = 255, .in = 22784, .out = 72}, type);
    check_both({.sizes = {130, 140, 40}, .count = 320, .in = 27200, .out = 200}, type);
  }
}

// The group is multiplied plainly, within the same kernel.
TEST_F(GateGradients, WhereTheWeightsOfOneGroupLieAtAnOddAddress) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_both({.sizes = {130, 140, 40}, .count = 320, .in = 27200, .out = 16, .second_w_past = 4},
               type);
  }
}

// A row behind those of its group is another group's, and so are its sums.
TEST_F(GateGradients, OfGroupsOfManySizes) {
  Sizes sizes;
  for (std::int64_t group = 0; group < 40; ++group) sizes.push_back(group * 7 % 5);
  sizes[20] = 300;
  check_both({.sizes = sizes, .count = sum_of(sizes), .in = 8200, .out = 40}, DataType::Bf16);
}

TEST_F(GateGradients, AReplayFollowsTheSizesOnTheDevice) {
  for (const std::int64_t in : {264, 20488}) {
    Gates problem({.sizes = {100, 100, 100, 100}, .count = 400, .in = in, .out = 40},
                  DataType::Bf16, {});
    const MakeCall call = problem.call();
    const Capture capture = problem.twins().captured(call);
    for (const Sizes& sizes : std::vector<Sizes>{{0, 0, 0, 400}, {0, 0, 0, 0}, {1, 128, 129, 3}}) {
      problem.change_sizes(sizes);
      problem.twins().expect_same_replayed(capture, call, problem.written());
    }
  }
}

// One kernel does it all on sm_90, and the sums of a probability's gradient take another; few tiles
// and other devices take the product's and SwiGLU's.
TEST_F(GateGradients, AreOneKernelWhereItSavesAPass) {
  const auto devices = list_devices();
  ASSERT_TRUE(devices);
  const bool is_hopper = devices->front().capability.major == 9;
  const auto nodes = [](std::int64_t in, bool dprobabilities) {
    const Shape shape{.sizes = {300, 0, 100}, .count = 400, .in = in, .out = 24};
    Gates problem(shape, DataType::Bf16, {.dprobabilities = dprobabilities});
    return Twins::nodes_of(problem.twins().captured(problem.call()));
  };
  EXPECT_EQ(nodes(24576, false), is_hopper ? 1U : 2U);
  EXPECT_EQ(nodes(24576, true), 2U);
  EXPECT_EQ(nodes(64, false), 2U);
}

}  // namespace
}  // namespace capo::gpu
