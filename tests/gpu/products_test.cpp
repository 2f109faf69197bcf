// GroupedProduct on the device, on tensor cores and plainly, against the host's.

#include "tests/gpu/twins.h"

#include <fmt/format.h>

#include <utility>

namespace capo::gpu {
namespace {

using run::GroupedProduct;
using Kind = GroupedProduct::Kind;

// Bytes past a multiple of 256.
struct Past {
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t second_w = 0;
};

struct Shape {
  Sizes sizes;
  std::int64_t count = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Past past = {};
};

// What neither is in use nor between two groups is NaN.
class Problem {
 public:
  Problem(const Shape& shape, DataType type, DataType weight_type) : shape_(shape), type_(type) {
    Tensor x = at_random(type, shape.count * shape.in, 1);
    Tensor y = at_random(type, shape.count * shape.out, 2);
    x.spoil_from(used() * shape.in);
    y.spoil_from(used() * shape.out);
    x_ = twins_.add(x, shape.past.x);
    y_ = twins_.add(y, shape.past.y);
    for (std::size_t group = 0; group < shape.sizes.size(); ++group) {
      const auto seed = static_cast<std::uint32_t>(3 + group);
      w_.push_back(twins_.add(at_random(weight_type, shape.in * shape.out, seed),
                              group == 1 ? shape.past.second_w : 0));
    }
    sizes_ = twins_.add_numbers(shape.sizes);
    table_ = twins_.add_table(w_);
  }

  [[nodiscard]] MakeCall call(Kind kind, Write write) const {
    return [this, kind, write](const Memory& m) {
      return GroupedProduct{.kind = kind,
                            .type = type_,
                            .gradient_type = w_.front().type,
                            .write = write,
                            .rows = {.count = shape_.count,
                                     .groups = static_cast<std::int64_t>(w_.size()),
                                     .sizes = m.as<std::int64_t>(sizes_)},
                            .in = shape_.in,
                            .out = shape_.out,
                            .x = m.at(x_),
                            .y = m.at(y_),
                            .w = m.as<void*>(table_)};
    };
  }
  [[nodiscard]] std::vector<Part> written(Kind kind) const {
    if (kind == Kind::Forward) return {first_of(y_, used() * shape_.out)};
    if (kind == Kind::InputGradient) return {first_of(x_, used() * shape_.in)};
    std::vector<Part> parts;
    for (const Slot& w : w_) parts.push_back(all_of(w));
    return parts;
  }
  void check(Kind kind, Write write = Write::Overwrite) {
    SCOPED_TRACE("in " + std::to_string(shape_.in) + ", out " + std::to_string(shape_.out) +
                 ", kind " + std::to_string(static_cast<int>(kind)) + ", write " +
                 std::to_string(static_cast<int>(write)) + ", types " +
                 std::string(name_of(type_)) + " and " + std::string(name_of(w_.front().type)));
    twins_.expect_same(call(kind, write), written(kind));
  }
  [[nodiscard]] Twins& twins() { return twins_; }
  [[nodiscard]] const std::vector<Slot>& w() const { return w_; }
  void change_sizes(const Sizes& sizes) {
    shape_.sizes = sizes;
    twins_.change(sizes_, sizes);
  }

 private:
  [[nodiscard]] std::int64_t used() const { return sum_of(shape_.sizes); }

  Shape shape_;
  DataType type_;
  Twins twins_;
  Slot x_;
  Slot y_;
  std::vector<Slot> w_;
  Slot sizes_;
  Slot table_;
};

// All kinds; weight gradients in the type itself and in fp32, overwritten and added.
void check_all(const Shape& shape, DataType type) {
  Problem(shape, type, type).check(Kind::Forward);
  Problem(shape, type, type).check(Kind::InputGradient);
  for (const Write write : {Write::Overwrite, Write::Add}) {
    Problem(shape, type, type).check(Kind::WeightGradient, write);
    if (type == DataType::Fp32) continue;
    Problem(shape, type, DataType::Fp32).check(Kind::WeightGradient, write);
  }
}

using Products = Kernels;

TEST_F(Products, OfOddSizes) {
  for (const DataType type : kTypes) {
    check_all({.sizes = {5, 0, 9, 2}, .count = 21, .in = 19, .out = 13}, type);
    check_all({.sizes = {1}, .count = 1, .in = 1, .out = 1}, type);
    check_all({.sizes = {70, 0, 67}, .count = 140, .in = 65, .out = 130}, type);
  }
}

TEST_F(Products, OfLessThanATile) {
  for (const DataType type : kTypes) {
    check_all({.sizes = {5, 0, 9, 2}, .count = 21, .in = 40, .out = 24}, type);
    check_all({.sizes = {1, 1}, .count = 2, .in = 8, .out = 8}, type);
  }
}

TEST_F(Products, OfTilesThatEndAnywhere) {
  for (const DataType type : kTypes) {
    check_all({.sizes = {130, 0, 3, 257, 1}, .count = 400, .in = 72, .out = 264}, type);
    check_all({.sizes = {0, 128, 64, 0, 63}, .count = 255, .in = 256, .out = 136}, type);
    check_all({.sizes = {191, 193}, .count = 384, .in = 328, .out = 520}, type);
  }
}

TEST_F(Products, OfManyTilesAndSlices) {
  const Shape shape{.sizes = {700, 1, 800, 505}, .count = 2048, .in = 1024, .out = 512};
  check_all(shape, DataType::Bf16);
  check_all(shape, DataType::Fp16);
}

// Gradients of weights take another kernel on sm_90 where groups are large on average.
TEST_F(Products, OfManyRowsInAGroup) {
  const Shape shape{.sizes = {901, 0, 1103, 300}, .count = 3200, .in = 328, .out = 264};
  check_all(shape, DataType::Bf16);
  check_all(shape, DataType::Fp16);
}

// Two warpgroups take turns, in clusters of two blocks of which the second may have nothing to
// write: over more tiles than there are clusters, and over less than a tile.
TEST_F(Products, OfManyRowsInTurns) {
  for (const Write write : {Write::Overwrite, Write::Add}) {
    for (const Shape& shape : {Shape{.sizes = {1600, 30}, .count = 1640, .in = 200, .out = 8200},
                               Shape{.sizes = {1700, 1}, .count = 1701, .in = 8, .out = 8}}) {
      Problem(shape, DataType::Bf16, DataType::Fp32).check(Kind::WeightGradient, write);
    }
  }
}

// Every block takes several tiles, of several groups: no device has as many multiprocessors.
TEST_F(Products, OfMoreTilesThanBlocks) {
  const Shape shape{.sizes = {300, 0, 257, 1, 200}, .count = 800, .in = 64, .out = 8200};
  check_all(shape, DataType::Bf16);
}

// Groups are taken by size from both ends, which changes no bit: many and few rows, more groups
// than a warp has threads, as many as are mixed, and one more. All blocks take several tiles.
TEST_F(Products, OfGroupsThatAreMixed) {
  const auto sizes_of = [](std::int64_t groups, std::int64_t most) {
    Sizes sizes;
    for (std::int64_t group = 0; group < groups; ++group) sizes.push_back(group * 7 % 5);
    sizes[static_cast<std::size_t>(groups) / 2] = most;
    return sizes;
  };
  for (const auto& [groups, wide] : {std::pair<std::int64_t, std::int64_t>{5, 8200}, {40, 1032}}) {
    const Sizes sizes = sizes_of(groups, 300);
    check_all({.sizes = sizes, .count = sum_of(sizes), .in = wide, .out = 72}, DataType::Bf16);
    check_all({.sizes = sizes, .count = sum_of(sizes), .in = 72, .out = wide}, DataType::Bf16);
  }
  for (const std::int64_t groups : {256, 257}) {
    const Sizes sizes = sizes_of(groups, 300);
    check_all({.sizes = sizes, .count = sum_of(sizes), .in = 24, .out = 264}, DataType::Bf16);
  }
}

TEST_F(Products, OfFp32InManyTiles) {
  check_all({.sizes = {300, 0, 212}, .count = 600, .in = 256, .out = 320}, DataType::Fp32);
}

TEST_F(Products, WhereTensorsLieAtOddAddresses) {
  const Sizes sizes{130, 0, 40};
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_all({.sizes = sizes, .count = 200, .in = 136, .out = 264, .past = {.x = 2}}, type);
    check_all({.sizes = sizes, .count = 200, .in = 136, .out = 264, .past = {.y = 8}}, type);
  }
  check_all({.sizes = sizes, .count = 200, .in = 136, .out = 72, .past = {.x = 4, .y = 12}},
            DataType::Fp32);
}

// The kernel for tensor cores finds out on the device, group by group.
TEST_F(Products, WhereTheWeightsOfOneGroupLieAtAnOddAddress) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_all(
        {.sizes = {130, 140, 40}, .count = 320, .in = 136, .out = 264, .past = {.second_w = 4}},
        type);
    check_all(
        {.sizes = {900, 1000, 500}, .count = 2400, .in = 200, .out = 264, .past = {.second_w = 4}},
        type);
  }
}

TEST_F(Products, OfAsManyGroupsAsThereMayBe) {
  Sizes sizes;
  for (std::int64_t group = 0; group < kMostGroups; ++group) sizes.push_back(group * 7 % 4);
  for (const DataType type : {DataType::Bf16, DataType::Fp32}) {
    check_all({.sizes = sizes, .count = sum_of(sizes) + 3, .in = 16, .out = 24}, type);
  }
}

TEST_F(Products, OfNoRows) {
  for (const DataType type : kTypes) {
    check_all({.sizes = {0, 0}, .count = 0, .in = 40, .out = 24}, type);
    check_all({.sizes = {0, 0}, .count = 130, .in = 136, .out = 264}, type);
  }
}

TEST_F(Products, WithoutSizesAllRowsAreOneGroup) {
  for (const DataType type : kTypes) {
    Twins twins;
    const Slot x = twins.add(at_random(type, 131 * 48, 1));
    const Slot w = twins.add(at_random(type, 56 * 48, 2));
    const Slot y = twins.add(at_random(type, 131 * 56, 3));
    const Slot table = twins.add_table({w});
    twins.expect_same(
        [&](const Memory& m) {
          return GroupedProduct{.type = type,
                                .rows = {.count = 131},
                                .in = 48,
                                .out = 56,
                                .x = m.at(x),
                                .y = m.at(y),
                                .w = m.as<void*>(table)};
        },
        {all_of(y)});
  }
}

TEST_F(Products, GradientsInTheOtherHalfPrecision) {
  const Shape shape{.sizes = {9, 0, 70}, .count = 80, .in = 24, .out = 40};
  Problem(shape, DataType::Bf16, DataType::Fp16).check(Kind::WeightGradient, Write::Add);
  Problem(shape, DataType::Fp32, DataType::Bf16).check(Kind::WeightGradient, Write::Overwrite);
}

// On tensor cores and plainly. Only gradients of weights are added to what is there, whatever the
// call says.
TEST_F(Products, AReplayFollowsTheSizesOnTheDevice) {
  const std::vector<Sizes> others{
      {0, 0, 0, 400}, {400, 0, 0, 0}, {0, 0, 0, 0}, {1, 128, 129, 3}, {100, 100, 100, 100}};
  for (const Kind kind : {Kind::Forward, Kind::InputGradient, Kind::WeightGradient}) {
    for (const std::int64_t in : {264, 19}) {
      // All rows are in use at first, so that none is NaN when others are.
      Problem problem({.sizes = {100, 100, 100, 100}, .count = 400, .in = in, .out = 136},
                      DataType::Bf16, DataType::Bf16);
      const MakeCall call = problem.call(kind, Write::Add);
      const Capture capture = problem.twins().captured(call);
      for (const Sizes& sizes : others) {
        problem.change_sizes(sizes);
        problem.twins().expect_same_replayed(capture, call, problem.written(kind));
      }
    }
  }
}

// A forward with what follows it. In its parts it is the calls that it stands for.
class WithEpilogue {
 public:
  struct Parts {
    bool bias = true;
    bool scales = true;
    bool gate = true;
    bool probabilities = true;
  };

  WithEpilogue(const Shape& shape, DataType type, Parts parts)
      : problem_(shape, type, type), shape_(shape), type_(type), parts_(parts) {
    std::vector<Slot> biases;
    for (std::size_t group = 0; group < shape.sizes.size(); ++group) {
      biases.push_back(twins().add(
          at_random(type, shape.out, static_cast<std::uint32_t>(200 + group)), group == 1 ? 4 : 0));
    }
    biases_ = twins().add_table(biases);
    scales_ = twins().add(at_random(DataType::Fp32, shape.count, 300));
    probabilities_ = twins().add(at_random(DataType::Fp32, shape.count, 301));
    gated_ = twins().add(at_random(type, shape.count * (shape.out / 2), 302));
  }

  [[nodiscard]] MakeCall call() const {
    return [this](const Memory& m) {
      auto product = std::get<GroupedProduct>(problem_.call(Kind::Forward, Write::Overwrite)(m));
      if (parts_.bias) product.epilogue.bias = m.as<void*>(biases_);
      if (parts_.bias && parts_.scales) product.epilogue.scales = m.as<float>(scales_);
      if (parts_.gate) product.epilogue.gated = m.at(gated_);
      if (parts_.gate && parts_.probabilities) {
        product.epilogue.probabilities = m.as<float>(probabilities_);
      }
      return product;
    };
  }
  [[nodiscard]] std::vector<Part> written() const {
    std::vector<Part> parts = problem_.written(Kind::Forward);
    const std::int64_t rows = sum_of(shape_.sizes);
    if (parts_.gate) parts.push_back(first_of(gated_, rows * (shape_.out / 2)));
    return parts;
  }
  void check() {
    SCOPED_TRACE(fmt::format("in {}, out {}, {}, bias {}, scales {}, gate {}, probabilities {}",
                             shape_.in, shape_.out, name_of(type_), parts_.bias, parts_.scales,
                             parts_.gate, parts_.probabilities));
    twins().expect_same_in_parts(call(), written());
  }
  [[nodiscard]] Twins& twins() { return problem_.twins(); }
  void change_sizes(const Sizes& sizes) {
    shape_.sizes = sizes;
    problem_.change_sizes(sizes);
  }

 private:
  Problem problem_;
  Shape shape_;
  DataType type_;
  Parts parts_;
  Slot biases_;
  Slot scales_;
  Slot probabilities_;
  Slot gated_;
};

void check_epilogues(const Shape& shape, DataType type) {
  for (const bool bias : {false, true}) {
    for (const bool gate : {false, true}) {
      if (!bias && !gate) continue;
      WithEpilogue(shape, type, {.bias = bias, .gate = gate}).check();
      WithEpilogue(shape, type,
                   {.bias = bias, .scales = false, .gate = gate, .probabilities = false})
          .check();
    }
  }
}

TEST_F(Products, GoOnWithBiasAndGateAsCallsOfTheirOwnWould) {
  for (const DataType type : kTypes) {
    check_epilogues({.sizes = {5, 0, 9, 2}, .count = 21, .in = 19, .out = 14}, type);
    check_epilogues({.sizes = {1, 1}, .count = 2, .in = 8, .out = 16}, type);
    check_epilogues({.sizes = {5, 0, 9, 2}, .count = 21, .in = 40, .out = 24}, type);
  }
}

// One kernel does it all where there are several tiles for each multiprocessor.
TEST_F(Products, OfManyTilesGoOnInTheSameKernel) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_epilogues({.sizes = {130, 0, 3, 257, 1}, .count = 400, .in = 24, .out = 20496}, type);
    check_epilogues({.sizes = {0, 128, 64, 0, 63}, .count = 255, .in = 72, .out = 25600}, type);
    check_epilogues(
        {.sizes = {130, 140, 40}, .count = 320, .in = 16, .out = 30736, .past = {.second_w = 4}},
        type);
  }
}

TEST_F(Products, AReplayWithAnEpilogueFollowsTheSizesOnTheDevice) {
  WithEpilogue problem({.sizes = {100, 100, 100, 100}, .count = 400, .in = 40, .out = 20512},
                       DataType::Bf16, {});
  const MakeCall call = problem.call();
  const Capture capture = problem.twins().captured(call);
  for (const Sizes& sizes : std::vector<Sizes>{{0, 0, 0, 400}, {0, 0, 0, 0}, {1, 128, 129, 3}}) {
    problem.change_sizes(sizes);
    problem.twins().expect_same_replayed(capture, call, problem.written());
  }
}

// It makes gradients of weights over the rows of several microbatches in one call.
class Batched {
 public:
  struct Rows {
    Sizes sizes;
    std::int64_t count = 0;
    std::size_t past = 0;  ///< bytes of x past a multiple of 256
  };

  Batched(std::vector<Rows> batches, std::int64_t in, std::int64_t out, DataType type,
          DataType weight_type, std::size_t second_w_past = 0)
      : in_(in), out_(out), type_(type) {
    for (const Rows& rows : batches) {
      const auto seed = static_cast<std::uint32_t>(2 * batches_.size());
      Tensor x = at_random(type, rows.count * in, seed);
      Tensor y = at_random(type, rows.count * out, seed + 1);
      x.spoil_from(sum_of(rows.sizes) * in);
      y.spoil_from(sum_of(rows.sizes) * out);
      batches_.push_back({.x = twins_.add(x, rows.past),
                          .y = twins_.add(y),
                          .sizes = twins_.add_numbers(rows.sizes),
                          .count = rows.count});
    }
    for (std::size_t group = 0; group < batches.front().sizes.size(); ++group) {
      w_.push_back(
          twins_.add(at_random(weight_type, in * out, static_cast<std::uint32_t>(90 + group)),
                     group == 1 ? second_w_past : 0));
    }
    table_ = twins_.add_table(w_);
  }

  [[nodiscard]] MakeCall call(Write write) const {
    return [this, write](const Memory& m) {
      const Batch& first = batches_.front();
      GroupedProduct product{.kind = Kind::WeightGradient,
                             .type = type_,
                             .gradient_type = w_.front().type,
                             .write = write,
                             .rows = {.count = first.count,
                                      .groups = static_cast<std::int64_t>(w_.size()),
                                      .sizes = m.as<std::int64_t>(first.sizes)},
                             .in = in_,
                             .out = out_,
                             .x = m.at(first.x),
                             .y = m.at(first.y),
                             .w = m.as<void*>(table_),
                             .further = static_cast<int>(batches_.size()) - 1};
      for (std::size_t at = 1; at < batches_.size(); ++at) {
        const Batch& batch = batches_[at];
        product.batches[at - 1] = {.x = m.at(batch.x),
                                   .y = m.at(batch.y),
                                   .count = batch.count,
                                   .sizes = m.as<std::int64_t>(batch.sizes)};
      }
      return product;
    };
  }
  [[nodiscard]] std::vector<Part> written() const {
    std::vector<Part> parts;
    for (const Slot& w : w_) parts.push_back(all_of(w));
    return parts;
  }
  [[nodiscard]] Twins& twins() { return twins_; }
  void change_sizes(std::size_t batch, const Sizes& sizes) {
    twins_.change(batches_[batch].sizes, sizes);
  }

 private:
  struct Batch {
    Slot x;
    Slot y;
    Slot sizes;
    std::int64_t count = 0;
  };

  std::int64_t in_;
  std::int64_t out_;
  DataType type_;
  Twins twins_;
  std::vector<Batch> batches_;
  std::vector<Slot> w_;
  Slot table_;
};

// Gradients are overwritten and added, in the type itself and in fp32.
void check_batches(const std::vector<Batched::Rows>& batches, std::int64_t in, std::int64_t out,
                   DataType type, std::size_t second_w_past = 0) {
  for (const Write write : {Write::Overwrite, Write::Add}) {
    for (const DataType weight_type : {type, DataType::Fp32}) {
      SCOPED_TRACE("in " + std::to_string(in) + ", out " + std::to_string(out) + ", write " +
                   std::to_string(static_cast<int>(write)) + ", types " +
                   std::string(name_of(type)) + " and " + std::string(name_of(weight_type)));
      Batched problem(batches, in, out, type, weight_type, second_w_past);
      problem.twins().expect_same(problem.call(write), problem.written());
    }
  }
}

TEST_F(Products, OfSeveralBatchesInOneCall) {
  const std::vector<Batched::Rows> small{
      {{5, 0, 9, 0}, 21}, {{0, 0, 1, 7}, 8}, {{3, 0, 70, 2}, 80}};
  const std::vector<Batched::Rows> large{
      {{130, 0, 3, 257, 0}, 400}, {{0, 0, 64, 1, 0}, 65}, {{191, 0, 193, 128, 0}, 512}};
  for (const DataType type : kTypes) {
    check_batches(small, 19, 13, type);
    check_batches(small, 40, 24, type);
    check_batches(large, 328, 520, type);
  }
}

TEST_F(Products, OfSeveralBatchesOfManyRows) {
  const std::vector<Batched::Rows> batches{{{901, 0, 1103}, 2100}, {{1, 0, 800}, 900}};
  check_batches(batches, 328, 264, DataType::Bf16);
  check_batches(batches, 1024, 512, DataType::Fp16);
}

TEST_F(Products, OfAsManyBatchesAsThereMayBe) {
  std::vector<Batched::Rows> batches;
  for (std::int64_t at = 0; at < run::kMostBatches; ++at) {
    batches.push_back({.sizes = {at % 3 * 40, 0, 100 - at}, .count = 200});
  }
  check_batches(batches, 264, 136, DataType::Bf16);
  check_batches(batches, 65, 130, DataType::Fp32);
}

TEST_F(Products, OfSeveralBatchesAtOddAddresses) {
  const std::vector<Batched::Rows> odd{{{130, 0, 40}, 200}, {{1, 140, 30}, 200, 2}};
  const std::vector<Batched::Rows> even{{{130, 0, 40}, 200}, {{1, 140, 30}, 200}};
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    check_batches(odd, 136, 264, type);
    check_batches(even, 136, 264, type, 4);
  }
}

TEST_F(Products, AReplayFollowsTheSizesOfEachBatch) {
  const std::vector<Sizes> others{{0, 0, 0, 400}, {0, 0, 0, 0}, {1, 128, 129, 3}};
  for (const std::int64_t in : {264, 19}) {
    // All rows are in use at first, so that none is NaN when others are.
    const Batched::Rows all{{100, 100, 100, 100}, 400};
    Batched problem({all, all, all}, in, 136, DataType::Bf16, DataType::Fp32);
    const MakeCall call = problem.call(Write::Add);
    const Capture capture = problem.twins().captured(call);
    for (std::size_t first = 0; first < others.size(); ++first) {
      for (std::size_t batch = 0; batch < 3; ++batch) {
        problem.change_sizes(batch, others[(first + batch) % others.size()]);
      }
      problem.twins().expect_same_replayed(capture, call, problem.written());
    }
  }
}

// Infinity times the zeros behind a group's rows would be NaN.
TEST_F(Products, ANeighboursInfinityStaysThere) {
  const std::int64_t in = 136;
  const std::int64_t out = 264;
  Twins twins;
  Tensor x = at_random(DataType::Bf16, 300 * in, 1);
  Tensor y = at_random(DataType::Bf16, 300 * out, 2);
  for (std::int64_t i = 100 * in; i < 200 * in; ++i) {
    x.set(i, std::numeric_limits<double>::infinity());
  }
  const Slot x_slot = twins.add(x);
  const Slot y_slot = twins.add(y);
  std::vector<Slot> w;
  for (std::uint32_t seed = 3; seed < 6; ++seed) {
    w.push_back(twins.add(at_random(DataType::Fp32, in * out, seed)));
  }
  const Slot table = twins.add_table(w);
  const Slot sizes = twins.add_numbers(Sizes{100, 100, 100});
  twins.expect_same(
      [&](const Memory& m) {
        return GroupedProduct{
            .kind = Kind::WeightGradient,
            .rows = {.count = 300, .groups = 3, .sizes = m.as<std::int64_t>(sizes)},
            .in = in,
            .out = out,
            .x = m.at(x_slot),
            .y = m.at(y_slot),
            .w = m.as<void*>(table)};
      },
      {all_of(w[0]), {.slot = w[1], .count = in * out, .value = Part::Value::Any}, all_of(w[2])});
}

TEST_F(Products, OfTooManyGroupsAreRefused) {
  const GroupedProduct many{.rows = {.count = 1, .groups = kMostGroups + 1}, .in = 8, .out = 8};
  EXPECT_FALSE(launch(many, nullptr).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace capo::gpu
