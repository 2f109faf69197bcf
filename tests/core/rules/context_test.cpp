#include "core/rules/context.h"

#include "core/diag/diagnostics.h"
#include "core/input/load.h"
#include "core/rules/passes.h"
#include "core/rules/plan_view.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

Input input_of(std::string text) {
  auto input = load(Source{.name = "x", .text = std::move(text)}, {});
  EXPECT_TRUE(input);
  return std::move(*input);
}

TEST(Context, OfNothingHasNothing) {
  const Input input;
  const CheckOptions options;
  const Context context(input, options);
  EXPECT_TRUE(context.orders().empty());
  EXPECT_TRUE(context.wirings().empty());
  EXPECT_FALSE(context.plan_wanted());
}

TEST(Context, FindsTheFirstAndTheLastEntryOfAKind) {
  const Input input = input_of("[1, 1, -1, -1]");
  const CheckOptions options;
  const Context context(input, options);
  const OrderView& order = context.orders().front();
  EXPECT_EQ(order.find(Kind::Forward, 1, 0), 0u);
  EXPECT_EQ(order.find_last(Kind::Forward, 1), 1u);
  EXPECT_EQ(order.find(Kind::Forward, 1, 2), order.entries.size());
  EXPECT_EQ(order.find_last(Kind::BackwardWeight, 1), order.entries.size());
}

TEST(Context, MakesAgainWhatItForgot) {
  const Input input = input_of("[1, -1, 1, -1.5, -1, -1.5]");
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  Context context(input, options);
  const std::size_t hazards = context.plan_view().hazards().size();
  EXPECT_GT(hazards, 0U);
  context.forget_graphs();
  EXPECT_EQ(context.plan_view().hazards().size(), hazards);
  EXPECT_EQ(context.wirings().size(), 1U);
}

TEST(Context, KnowsThatOrdersAreCleanIfTheyWereInTheOneThatItIsLike) {
  const CheckOptions options;
  for (const auto& [text, clean] : {std::pair("[1, -1]", true), std::pair("[-1, 1]", false)}) {
    const Input input = input_of(text);
    const Context context(input, options);
    Diagnostics found;
    Passes(context, found).run();
    EXPECT_EQ(found.errors() == 0, clean);
    EXPECT_FALSE(context.orders_known_clean()) << "it is like none";
    const Context like(context, options);
    EXPECT_EQ(like.orders_known_clean(), clean);
    Diagnostics found_again;
    Passes again(like, found_again);
    again.run();
    EXPECT_EQ(found_again.errors(), found.errors());
    EXPECT_TRUE(again.ran(Pass::Counts));
  }
}

// Few of many microbatches are sorted otherwise than all of them.
TEST(Context, WalksMicrobatchesInTheirOrderHoweverFewThereAre) {
  const Input input = input_of("capo 1\nrank 0: F1.900 F1.3 B1.900 B1.3\n");
  const CheckOptions options;
  const Context context(input, options);
  std::vector<std::pair<std::int32_t, std::size_t>> seen;
  Context::for_each_microbatch(context.orders().front(), [&](const MicrobatchView& view) {
    seen.emplace_back(view.microbatch, view.positions.size());
  });
  EXPECT_EQ(seen, (std::vector<std::pair<std::int32_t, std::size_t>>{{3, 2}, {900, 2}}));
}

}  // namespace
}  // namespace capo
