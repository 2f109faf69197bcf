// Layouts of main_grad. Views are compared with what a view is: the same places in the same order.

#include "core/frameworks/te/main_grad.h"

#include <gtest/gtest.h>

#include <limits>

namespace capo::gradients {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr GroupedWeight kWeight{.groups = 4, .out = 64, .in = 32};

std::string refusal(const Sizes& shape, const Sizes& strides,
                    const GroupedWeight& weight = kWeight) {
  return main_grad_refusal({.shape = shape, .strides = strides}, weight).value_or("");
}

TeMainGrad te(ModuleKind kind, const Sizes& shape, const Sizes& strides) {
  return te_with_main_grad(kind, {.shape = shape, .strides = strides}, kWeight);
}

TEST(ViewStrides, DimensionsMergeWhereOneGoesOnWhereTheOtherEnds) {
  EXPECT_EQ(view_strides(Sizes{4, 64, 32}, Sizes{2048, 32, 1}, Sizes{8192}), (Sizes{1}));
  EXPECT_EQ(view_strides(Sizes{8192}, Sizes{1}, Sizes{4, 64, 32}), (Sizes{2048, 32, 1}));
  EXPECT_EQ(view_strides(Sizes{256, 32}, Sizes{32, 1}, Sizes{4, 64, 32}), (Sizes{2048, 32, 1}));
  EXPECT_EQ(view_strides(Sizes{2, 3, 4}, Sizes{12, 4, 1}, Sizes{6, 4}), (Sizes{4, 1}));
  // A gap between rows: rows may be split, and not merged.
  EXPECT_EQ(view_strides(Sizes{6, 4}, Sizes{8, 1}, Sizes{2, 3, 4}), (Sizes{24, 8, 1}));
  EXPECT_EQ(view_strides(Sizes{6, 4}, Sizes{8, 1}, Sizes{6, 2, 2}), (Sizes{8, 2, 1}));
  EXPECT_EQ(view_strides(Sizes{6, 4}, Sizes{8, 1}, Sizes{24}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{6, 4}, Sizes{8, 1}, Sizes{3, 8}), std::nullopt);
}

TEST(ViewStrides, NeedNoStepOfOne) {
  EXPECT_EQ(view_strides(Sizes{6}, Sizes{2}, Sizes{2, 3}), (Sizes{6, 2}));
  EXPECT_EQ(view_strides(Sizes{2, 3}, Sizes{6, 2}, Sizes{6}), (Sizes{2}));
  EXPECT_EQ(view_strides(Sizes{4, 6}, Sizes{1, 4}, Sizes{4, 2, 3}), (Sizes{1, 12, 4}));
  EXPECT_EQ(view_strides(Sizes{4, 6}, Sizes{1, 4}, Sizes{24}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{3, 2}, Sizes{0, 0}, Sizes{6}), (Sizes{0}));
}

TEST(ViewStrides, DimensionsOfOneElementMergeWithAny) {
  EXPECT_EQ(view_strides(Sizes{4, 1}, Sizes{1, 7}, Sizes{4}), (Sizes{1}));
  EXPECT_EQ(view_strides(Sizes{2, 1, 3}, Sizes{3, 99, 1}, Sizes{6}), (Sizes{1}));
  EXPECT_TRUE(view_strides(Sizes{6}, Sizes{1}, Sizes{1, 6, 1}));
  EXPECT_TRUE(view_strides(Sizes{}, Sizes{}, Sizes{1, 1, 1}));
  EXPECT_TRUE(view_strides(Sizes{1, 1}, Sizes{5, 9}, Sizes{}));
}

TEST(ViewStrides, KeepTheNumberOfElements) {
  EXPECT_EQ(view_strides(Sizes{6}, Sizes{1}, Sizes{7}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{6}, Sizes{1}, Sizes{2, 4}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{6}, Sizes{1}, Sizes{4, 3}), std::nullopt);
  EXPECT_TRUE(view_strides(Sizes{0, 4}, Sizes{4, 1}, Sizes{3, 0}));
  EXPECT_TRUE(view_strides(Sizes{0, kMost, kMost}, Sizes{1, 1, 1}, Sizes{kMost, kMost, 0}));
  EXPECT_EQ(view_strides(Sizes{0}, Sizes{1}, Sizes{1}), std::nullopt);
}

TEST(ViewStrides, AreNothingWhereANumberDoesNotFit) {
  EXPECT_EQ(view_strides(Sizes{kMost, 2}, Sizes{2, 1}, Sizes{2, kMost}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{4, 4}, Sizes{kMost, kMost / 2}, Sizes{16}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{8}, Sizes{kMost / 2}, Sizes{2, 4}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{4}, Sizes{1, 1}, Sizes{4}), std::nullopt);
  EXPECT_EQ(view_strides(Sizes{-4}, Sizes{1}, Sizes{-4}), std::nullopt);
}

// Places of the elements, in the order of their indices.
Sizes places(const Sizes& shape, const Sizes& strides) {
  Sizes all{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Sizes next;
    for (const std::int64_t place : all) {
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(place + i * strides[d]);
    }
    all = next;
  }
  return all;
}

// The strides that the elements next to the first one ask for, if the others agree.
std::optional<Sizes> strides_by_places(const Sizes& all, const Sizes& target) {
  Sizes strides(target.size(), 1);
  std::int64_t step = 1;
  for (std::size_t d = target.size(); d-- > 0;) {
    if (target[d] > 1) strides[d] = all[static_cast<std::size_t>(step)] - all[0];
    step *= target[d];
  }
  if (step != static_cast<std::int64_t>(all.size()) || places(target, strides) != all)
    return std::nullopt;
  return strides;
}

TEST(ViewStrides, AreFoundExactlyWhereAViewIsOne) {
  const std::vector<Sizes> shapes{{12},      {1, 12},   {12, 1},   {3, 4},    {4, 3},
                                  {2, 6},    {6, 2},    {2, 2, 3}, {2, 3, 2}, {3, 2, 2},
                                  {1, 3, 4}, {3, 1, 4}, {2, 1, 6}};
  const Sizes steps{0, 1, 2, 3, 4, 6, 12};
  std::size_t found = 0;
  std::size_t none = 0;
  for (const Sizes& shape : shapes) {
    for (std::size_t code = 0; code < steps.size() * steps.size() * steps.size(); ++code) {
      Sizes strides{steps[code % 7], steps[code / 7 % 7], steps[code / 49]};
      strides.resize(shape.size());
      const Sizes all = places(shape, strides);
      for (const Sizes& target : shapes) {
        const auto viewed = view_strides(shape, strides, target);
        const auto expected = strides_by_places(all, target);
        ASSERT_EQ(viewed.has_value(), expected.has_value())
            << ::testing::PrintToString(shape) << ::testing::PrintToString(strides)
            << ::testing::PrintToString(target);
        if (viewed) {
          ASSERT_EQ(places(target, *viewed), all);
        }
        ++(viewed ? found : none);
      }
    }
  }
  EXPECT_GT(found, 5000U);
  EXPECT_GT(none, 5000U);
}

TEST(MainGrad, MayHaveAnyShapeThatIsViewedInOnePiece) {
  EXPECT_EQ(refusal({4, 64, 32}, {2048, 32, 1}), "");
  EXPECT_EQ(refusal({256, 32}, {32, 1}), "");
  EXPECT_EQ(refusal({4, 2048}, {2048, 1}), "");
  EXPECT_EQ(refusal({8192}, {1}), "");
  EXPECT_EQ(refusal({2, 2, 64, 32}, {4096, 2048, 32, 1}), "");
  EXPECT_EQ(refusal({1, 8192, 1}, {7, 1, 7}), "");
  EXPECT_EQ(refusal({1, 64, 32}, {1, 32, 1}, {.groups = 1, .out = 64, .in = 32}), "");
  EXPECT_EQ(refusal({}, {}, {}), "");
}

TEST(MainGrad, ThatIsNotContiguousIsRefusedThoughItsShapeIsRight) {
  EXPECT_EQ(refusal({4, 64, 32}, {4096, 1, 64}),
            "main_grad of shape (4, 64, 32) with strides (4096, 1, 64) cannot be viewed as "
            "(groups 4, out 64, in 32): as that it has strides (4096, 1, 64) and not (2048, 32, "
            "1), so its elements do not lie one behind another");
  EXPECT_NE(refusal({4, 64, 32}, {4096, 32, 1}), "");
  EXPECT_NE(refusal({4, 64, 32}, {0, 32, 1}), "");
}

TEST(MainGrad, OfOtherShapesIsRefusedWhereAViewIsACopyOrHasGaps) {
  EXPECT_EQ(refusal({64, 4, 32}, {32, 2048, 1}),
            "main_grad of shape (64, 4, 32) with strides (32, 2048, 1) cannot be viewed as (groups "
            "4, out 64, in 32): its strides allow that only as a copy, which main_grad never sees");
  EXPECT_EQ(refusal({8192}, {2}),
            "main_grad of shape (8192,) with strides (2,) cannot be viewed as (groups 4, out 64, "
            "in 32): as that it has strides (4096, 64, 2) and not (2048, 32, 1), so its elements "
            "do not lie one behind another");
  EXPECT_NE(refusal({256, 32}, {64, 1}), "");
}

TEST(MainGrad, OfAnotherSizeIsRefused) {
  EXPECT_EQ(refusal({4, 64, 31}, {1984, 31, 1}),
            "main_grad of shape (4, 64, 31) with strides (1984, 31, 1) cannot be viewed as (groups "
            "4, out 64, in 32): it has 7936 elements and not 8192");
  EXPECT_NE(refusal({}, {}), "");
  EXPECT_NE(refusal({4, 0, 32}, {0, 32, 1}), "");
}

TEST(MainGrad, WithNumbersOutOfReachIsRefusedAndNotMiscounted) {
  EXPECT_EQ(refusal({kMost, 4}, {4, 1}),
            "main_grad of shape (9223372036854775807, 4) with strides (4, 1) cannot be viewed as "
            "(groups 4, out 64, in 32): its elements are too many to count");
  // 2^32 * 2^32 is 0 in 64 bits, and 2^63 + 8192 is nothing either.
  EXPECT_NE(refusal({std::int64_t{1} << 32, std::int64_t{1} << 32}, {1, 1}), "");
  EXPECT_NE(refusal({8192}, {1}, {.groups = kMost, .out = kMost, .in = 8192}), "");
  EXPECT_NE(refusal({4, 64, 32}, {kMost, kMost, kMost}), "");
  EXPECT_NE(refusal({4, 64}, {64}), "");
  EXPECT_NE(refusal({-4, -64, 32}, {2048, 32, 1}), "");
  EXPECT_NE(refusal({4, 64, 32}, {2048, -32, 1}), "");
}

// ops/_common.py:177 returns early on the right shape; grouped_tensor_storage.py:530 copies.
TEST(MainGrad, OfTheRightShapeAndWrongStridesSplitsTeThreeWays) {
  const Sizes shape{4, 64, 32};
  const Sizes transposed{2048, 1, 64};
  EXPECT_EQ(te(ModuleKind::GroupedLinear, shape, transposed), TeMainGrad::FailsInView);
  EXPECT_EQ(te(ModuleKind::GroupedLinearOp, shape, transposed), TeMainGrad::FailsInView);
  EXPECT_EQ(te(ModuleKind::GroupedMlp, shape, transposed), TeMainGrad::WritesCopySilently);
  EXPECT_EQ(te(ModuleKind::Linear, shape, transposed), TeMainGrad::Writes);
}

TEST(MainGrad, OfAnotherShapeIsRefusedByTeAsByCapo) {
  for (const ModuleKind kind :
       {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp}) {
    EXPECT_EQ(te(kind, {4, 64, 32}, {2048, 32, 1}), TeMainGrad::Writes);
    EXPECT_EQ(te(kind, {8192}, {1}), TeMainGrad::Writes);
    EXPECT_EQ(te(kind, {64, 4, 32}, {32, 2048, 1}), TeMainGrad::RefusesNamingIt);
    EXPECT_EQ(te(kind, {4, 64, 31}, {1984, 31, 1}), TeMainGrad::RefusesNamingIt);
  }
}

TEST(ViewStrides, WithoutElementsStayOrAreThoseOfTheShape) {
  EXPECT_EQ(view_strides(Sizes{0, 4}, Sizes{9, 3}, Sizes{0, 4}), (Sizes{9, 3}));
  EXPECT_EQ(view_strides(Sizes{0, 4}, Sizes{9, 3}, Sizes{4, 0}), (Sizes{1, 1}));
}

TEST(MainGradRefusal, IsNoneWithoutElements) {
  EXPECT_EQ(refusal({0, 64, 32}, {5, 3, 7}, {.groups = 0, .out = 64, .in = 32}), "");
}

TEST(TeWithMainGrad, WritesWhatLiesAtEqualDistances) {
  EXPECT_EQ(te(ModuleKind::GroupedLinear, {4, 64, 32}, {4096, 64, 2}), TeMainGrad::Writes);
}

TEST(TeWithMainGrad, RefusesMoreElementsThanThereCanBe) {
  const Sizes huge{kMost, kMost, 2};
  EXPECT_EQ(te_with_main_grad(ModuleKind::GroupedLinear, {.shape = huge, .strides = {1, 1, 1}},
                              {.groups = kMost, .out = kMost, .in = 2}),
            TeMainGrad::RefusesNamingIt);
}

}  // namespace
}  // namespace capo::gradients
