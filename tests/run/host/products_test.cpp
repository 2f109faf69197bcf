// GroupedProduct, against sums in double, and to the bit where the numbers are small and whole.

#include "core/model/model.h"
#include "tests/run/host/tensors.h"

#include <numeric>
#include <utility>

namespace capo::run::host {
namespace {

using Kind = GroupedProduct::Kind;
using Sizes = std::vector<std::int64_t>;

// One product with everything that it reads or writes; a copy's pointers still lead to the
// original. No extent is a multiple of another, the second group is empty, and the last five rows
// are not in use.
struct Problem {
  explicit Problem(DataType the_type, DataType weight_type, Sizes the_sizes = {5, 0, 9, 2},
                   std::int64_t the_count = 21)
      : type(the_type),
        sizes(std::move(the_sizes)),
        count(the_count),
        x(at_random(type, count * in, 1)),
        y(at_random(type, count * out, 2)) {
    for (std::size_t group = 0; group < sizes.size(); ++group) {
      w.push_back(at_random(weight_type, out * in, 3 + static_cast<std::uint32_t>(group)));
    }
    for (Tensor& weight : w) table.push_back(weight.data());
  }

  [[nodiscard]] std::int64_t used() const {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  }
  [[nodiscard]] GroupedProduct call(Kind kind, Write write = Write::Overwrite) {
    return {.kind = kind,
            .type = type,
            .gradient_type = w.front().type(),
            .write = write,
            .rows = {.count = count,
                     .groups = static_cast<std::int64_t>(sizes.size()),
                     .sizes = sizes.data()},
            .in = in,
            .out = out,
            .x = x.data(),
            .y = y.data(),
            .w = table.data()};
  }
  [[nodiscard]] std::size_t group_of(std::int64_t row) const {
    std::size_t group = 0;
    for (std::int64_t end = sizes[0]; row >= end; end += sizes[++group]) {
    }
    return group;
  }

  DataType type;
  Sizes sizes;
  std::int64_t count;
  std::int64_t in = 19;
  std::int64_t out = 13;
  Tensor x;
  Tensor y;
  std::vector<Tensor> w;
  std::vector<void*> table;
};

Values expected_y(const Problem& p) {
  Values y;
  for (std::int64_t row = 0; row < p.used(); ++row) {
    for (std::int64_t o = 0; o < p.out; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < p.in; ++i) {
        sum += p.x.value(row * p.in + i) * p.w[p.group_of(row)].value(o * p.in + i);
      }
      y.push_back(sum);
    }
  }
  return y;
}

Values expected_dx(const Problem& p) {
  Values dx;
  for (std::int64_t row = 0; row < p.used(); ++row) {
    for (std::int64_t i = 0; i < p.in; ++i) {
      double sum = 0;
      for (std::int64_t o = 0; o < p.out; ++o) {
        sum += p.y.value(row * p.out + o) * p.w[p.group_of(row)].value(o * p.in + i);
      }
      dx.push_back(sum);
    }
  }
  return dx;
}

Values expected_dw(const Problem& p, std::size_t group, Write write) {
  Values dw;
  for (std::int64_t o = 0; o < p.out; ++o) {
    for (std::int64_t i = 0; i < p.in; ++i) {
      double sum = write == Write::Add ? p.w[group].value(o * p.in + i) : 0;
      for (std::int64_t row = 0; row < p.used(); ++row) {
        if (p.group_of(row) != group) continue;
        sum += p.y.value(row * p.out + o) * p.x.value(row * p.in + i);
      }
      dw.push_back(sum);
    }
  }
  return dw;
}

TEST(HostProducts, ForwardIsTheSumOverInputsAndInputGradientOverOutputs) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    Problem forward(type, type);
    forward.x.spoil_from(forward.used() * forward.in);
    const Tensor y = forward.y;
    execute_twice(forward.call(Kind::Forward), {forward.y});
    expect_near(forward.y, y, expected_y(forward));
    Problem backward(type, type);
    backward.y.spoil_from(backward.used() * backward.out);
    const Tensor x = backward.x;
    execute_twice(backward.call(Kind::InputGradient), {backward.x});
    expect_near(backward.x, x, expected_dx(backward));
  }
}

void expect_weight_gradients(DataType type, DataType gradient_type, Write write) {
  Problem p(type, gradient_type);
  p.x.spoil_from(p.used() * p.in);
  p.y.spoil_from(p.used() * p.out);
  const Problem before = p;
  execute_twice(p.call(Kind::WeightGradient, write), {p.w[0], p.w[1], p.w[2], p.w[3]});
  for (std::size_t group = 0; group < p.w.size(); ++group) {
    SCOPED_TRACE(group);
    expect_near(p.w[group], before.w[group], expected_dw(before, group, write));
  }
}

TEST(HostProducts, WeightGradientIsTheSumOverTheGroupsRowsInEachType) {
  for (const DataType type : kTypes) {
    for (const DataType gradient_type : kTypes) {
      SCOPED_TRACE(testing::Message() << name_of(type) << " into " << name_of(gradient_type));
      expect_weight_gradients(type, gradient_type, Write::Overwrite);
      expect_weight_gradients(type, gradient_type, Write::Add);
    }
  }
}

// Another microbatch, with sizes of its own, and the first once more come behind the first.
TEST(HostProducts, FurtherBatchesAreSummedBeforeTheGradientIsWritten) {
  for (const DataType gradient_type : kTypes) {
    for (const Write write : {Write::Overwrite, Write::Add}) {
      Problem p(DataType::Bf16, gradient_type);
      Problem other(DataType::Bf16, gradient_type, {0, 4, 2, 9}, 15);
      p.x.spoil_from(p.used() * p.in);
      other.y.spoil_from(other.used() * other.out);
      const Problem before = p;
      GroupedProduct call = p.call(Kind::WeightGradient, write);
      call.further = 2;
      call.batches[0] = {other.x.data(), other.y.data(), other.count, other.sizes.data()};
      call.batches[1] = {p.x.data(), p.y.data(), p.count, p.sizes.data()};
      execute(call);
      for (std::size_t group = 0; group < p.w.size(); ++group) {
        SCOPED_TRACE(group);
        Values sum = expected_dw(before, group, write);
        const Values twice = expected_dw(before, group, Write::Overwrite);
        const Values others = expected_dw(other, group, Write::Overwrite);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += twice[i] + others[i];
        expect_near(p.w[group], before.w[group], sum);
      }
    }
  }
}

TEST(HostProducts, BatchesAreAddedInTheirOrder) {
  constexpr double kLarge = 16777216;
  const auto summed = [](const Values& first, const Values& second) {
    Tensor x(DataType::Fp32, first);
    Tensor further(DataType::Fp32, second);
    Tensor dy(DataType::Fp32, {1, 1});
    Tensor dw(DataType::Fp32, {8});
    void* table = dw.data();
    GroupedProduct call{.kind = Kind::WeightGradient,
                        .type = DataType::Fp32,
                        .write = Write::Add,
                        .rows = {.count = 2},
                        .in = 1,
                        .out = 1,
                        .x = x.data(),
                        .y = dy.data(),
                        .w = &table,
                        .further = 1};
    call.batches[0] = {.x = further.data(), .y = dy.data(), .count = 2};
    execute(call);
    return dw.value(0);
  };
  EXPECT_EQ(summed({kLarge, 1}, {-kLarge, 1}), 9) << "8 is added to the sum of both";
  EXPECT_EQ(summed({1, 1}, {kLarge, -kLarge}), 10);
}

TEST(HostProducts, AGroupIsEmptyIfItHasRowsInNoBatch) {
  Problem p(DataType::Bf16, DataType::Fp32, {3, 0}, 4);
  Problem other(DataType::Bf16, DataType::Fp32, {0, 0}, 4);
  const Problem before = p;
  GroupedProduct call = other.call(Kind::WeightGradient, Write::Add);
  call.w = p.table.data();
  call.further = 1;
  call.batches[0] = {p.x.data(), p.y.data(), p.count, p.sizes.data()};
  execute(call);
  expect_near(p.w[0], before.w[0], expected_dw(before, 0, Write::Add));
  EXPECT_EQ(p.w[1].bytes(), before.w[1].bytes());
  call.write = Write::Overwrite;
  execute(call);
  EXPECT_EQ(p.w[1].values(), Values(p.w[1].values().size(), 0.0));
}

TEST(HostProducts, AnEmptyGroupClearsAnOverwrittenGradientAndLeavesAnAddedOne) {
  for (const DataType type : kTypes) {
    Problem p(DataType::Bf16, type);
    const auto size = static_cast<std::size_t>(p.out * p.in);
    p.w[1] = Tensor(type, Values(size, -0.0));
    p.table[1] = p.w[1].data();
    const Tensor before = p.w[1];
    execute(p.call(Kind::WeightGradient, Write::Add));
    EXPECT_EQ(p.w[1].bytes(), before.bytes()) << "to the sign of zero";
    p.w[1].spoil_from(0);
    execute(p.call(Kind::WeightGradient));
    EXPECT_EQ(p.w[1].values(), Values(size, 0.0));
  }
}

TEST(HostProducts, WithoutRowsNoOutputIsTouched) {
  Problem p(DataType::Fp32, DataType::Fp32, {0, 0}, 6);
  const Problem before = p;
  execute(p.call(Kind::Forward));
  execute(p.call(Kind::InputGradient));
  EXPECT_EQ(p.y.bytes(), before.y.bytes());
  EXPECT_EQ(p.x.bytes(), before.x.bytes());
}

TEST(HostProducts, NullSizesMakeAllRowsOneGroup) {
  for (const Kind kind : {Kind::Forward, Kind::InputGradient, Kind::WeightGradient}) {
    Problem p(DataType::Fp32, DataType::Fp32, {21});
    const Problem before = p;
    GroupedProduct call = p.call(kind);
    call.rows = {.count = p.count};
    execute_twice(call, {p.x, p.y, p.w[0]});
    if (kind == Kind::Forward) expect_near(p.y, before.y, expected_y(before));
    if (kind == Kind::InputGradient) expect_near(p.x, before.x, expected_dx(before));
    if (kind == Kind::WeightGradient) {
      expect_near(p.w[0], before.w[0], expected_dw(before, 0, Write::Overwrite));
    }
  }
}

TEST(HostProducts, PointersMayLeadIntoOneAllocationInAnyOrder) {
  Problem p(DataType::Bf16, DataType::Bf16);
  execute(p.call(Kind::Forward));
  const Tensor apart = p.y;
  Values side_by_side;
  for (const std::size_t group : {2U, 0U, 3U, 1U}) {
    const Values values = p.w[group].values();
    side_by_side.insert(side_by_side.end(), values.begin(), values.end());
  }
  Tensor all(DataType::Bf16, side_by_side);
  const std::int64_t size = p.out * p.in;
  p.table = {all.at(size), all.at(3 * size), all.data(), all.at(2 * size)};
  p.y.spoil_from(0);
  execute(p.call(Kind::Forward));
  const auto used = static_cast<std::ptrdiff_t>(p.used() * p.out * p.y.element_bytes());
  EXPECT_TRUE(std::equal(apart.bytes().begin(), apart.bytes().begin() + used, p.y.bytes().begin()));

  // Gradients that lie side by side do not run into each other.
  const Tensor before = all;
  execute(p.call(Kind::WeightGradient, Write::Add));
  EXPECT_TRUE(std::equal(all.bytes().end() - size * all.element_bytes(), all.bytes().end(),
                         before.bytes().end() - size * all.element_bytes()))
      << "the empty group's, which lies last";
}

// Sums are exact in whatever order as far as a type counts without gaps.
TEST(HostProducts, SmallWholeNumbersAreExactToTheBit) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    Problem p(type, type);
    const auto whole = [](Tensor& tensor, std::int64_t step) {
      for (std::int64_t i = 0; i < tensor.count(); ++i) {
        tensor.set(i, static_cast<double>(i * step % 5 - 2));
      }
    };
    whole(p.x, 3);
    for (Tensor& weight : p.w) whole(weight, 7);
    execute(p.call(Kind::Forward));
    Values y = p.y.values();
    y.resize(static_cast<std::size_t>(p.used() * p.out));
    EXPECT_EQ(y, expected_y(p));
    whole(p.y, 2);
    const Values dx = expected_dx(p);
    execute(p.call(Kind::InputGradient));
    Values got = p.x.values();
    got.resize(dx.size());
    EXPECT_EQ(got, dx);
    whole(p.x, 4);
    const Problem before = p;
    execute(p.call(Kind::WeightGradient, Write::Add));
    for (std::size_t group = 0; group < p.w.size(); ++group) {
      EXPECT_EQ(p.w[group].values(), expected_dw(before, group, Write::Add));
    }
  }
}

struct Extents {
  std::int64_t rows = 1;
  std::int64_t in = 1;
  std::int64_t out = 1;
};

// All rows are one group.
void execute_one(Kind kind, const Extents& extents, Tensor& x, Tensor& y, Tensor& w,
                 Write write = Write::Overwrite) {
  void* table = w.data();
  execute(GroupedProduct{.kind = kind,
                         .type = x.type(),
                         .gradient_type = w.type(),
                         .write = write,
                         .rows = {.count = extents.rows},
                         .in = extents.in,
                         .out = extents.out,
                         .x = x.data(),
                         .y = y.data(),
                         .w = &table});
}

// One output, of as many products as there are numbers.
double product_of(const Values& x, const Values& w) {
  Tensor left(DataType::Fp32, x);
  Tensor right(DataType::Fp32, w);
  Tensor y(DataType::Fp32, {-1});
  execute_one(Kind::Forward, {.in = left.count()}, left, y, right);
  return y.value(0);
}

TEST(HostProducts, TermsAreAddedInAscendingOrder) {
  // 2^24 + 1 is no fp32: a one is lost behind it, and counts before it or after it is gone.
  constexpr double kLarge = 16777216;
  EXPECT_EQ(product_of({1, 1, kLarge, -kLarge}, {1, 1, 1, 1}), 2);
  EXPECT_EQ(product_of({kLarge, 1, -kLarge, 1}, {1, 1, 1, 1}), 1);
  EXPECT_EQ(product_of({kLarge, 1, 1, -kLarge}, {1, 1, 1, 1}), 0);
  EXPECT_EQ(product_of({kLarge, -kLarge, 1, 1, 0, 0, 0, 0, 1}, Values(9, 1.0)), 3);
}

TEST(HostProducts, RowsOfAWeightGradientAreAddedInAscendingOrder) {
  constexpr double kLarge = 16777216;
  Tensor x(DataType::Fp32, {kLarge, 1, -kLarge, 1});
  Tensor dy(DataType::Fp32, {1, 1, 1, 1});
  Tensor dw(DataType::Fp32, {8});
  execute_one(Kind::WeightGradient, {.rows = 4}, x, dy, dw, Write::Add);
  EXPECT_EQ(dw.value(0), 9) << "8 is added to the sum, not the sum's first term";
}

TEST(HostProducts, AnAddedGradientIsRoundedOnce) {
  // bf16 has 256 and 258, and nothing between. Rows add up to 257 in fp32, and 258 with the one
  // that was there; a sum rounded before would be 256, and 256 with it.
  Tensor x(DataType::Bf16, {255, 2});
  Tensor dy(DataType::Bf16, {1, 1});
  Tensor dw(DataType::Bf16, {1});
  execute_one(Kind::WeightGradient, {.rows = 2}, x, dy, dw, Write::Add);
  EXPECT_EQ(dw.value(0), 258);
}

// The size decides how the work is cut into pieces; no size may fall between them.
TEST(HostProducts, EverySmallSizeIsCovered) {
  for (std::int64_t rows = 0; rows <= 5; ++rows) {
    for (std::int64_t in = 1; in <= 18; ++in) {
      for (std::int64_t out = 1; out <= 18; ++out) {
        Tensor x(DataType::Fp32, Values(static_cast<std::size_t>(rows * in), 1.0));
        Tensor w(DataType::Fp32, Values(static_cast<std::size_t>(out * in), 2.0));
        Tensor y(DataType::Fp32, Values(static_cast<std::size_t>(rows * out), -1.0));
        execute_one(Kind::Forward, {rows, in, out}, x, y, w);
        ASSERT_EQ(y.values(),
                  Values(static_cast<std::size_t>(rows * out), static_cast<double>(2 * in)));
      }
    }
  }
}

}  // namespace
}  // namespace capo::run::host
