#include "sim/memory.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using simulated::costs;
using simulated::simulate_text;

constexpr MemoryChange kHalf{.forward = 1, .backward = -0.5, .weight = -0.5};

TEST(Memory, BothPublishedModelsOfOneOrder) {
  const char* list = "[1, 1, -1, 1, -1, -1.5, -1, -1.5, -1.5]";
  const auto all_at_weight = simulate_text(list);
  EXPECT_EQ((*all_at_weight)->peaks()[0].held, 3);
  EXPECT_EQ((*all_at_weight)->peaks()[0].time, 3);  // the third forward begins
  const auto half = simulate_text(list, {.memory = kHalf});
  EXPECT_EQ((*half)->peaks()[0].held, 2.5);
  EXPECT_EQ((*half)->peaks()[0].microbatches, 3);
}

TEST(Memory, AWholeBackwardGivesUpEverything) {
  const auto s = simulate_text("[1, 1, -1, -1]", {.memory = kHalf});
  EXPECT_EQ((*s)->peaks()[0].held, 2);
  const auto course = (*s)->memory_course(0);
  ASSERT_EQ(course.size(), 4U);
  EXPECT_EQ(course[2].held, 1);
  EXPECT_EQ(course[3].held, 0);
  EXPECT_EQ(course[3].microbatches, 0);
}

TEST(Memory, AChunkHoldsItsShare) {
  const auto s = simulated::simulate_named(
      {.name = "1f1b-interleaved", .ranks = 4, .microbatches = 16}, {.memory = kHalf});
  const double published[]{5.5, 4.5, 3.5, 2.5};
  for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ((*s)->peaks()[r].held, published[r]);
}

TEST(Memory, WhatEndsMakesRoomForWhatBeginsAtTheSameTime) {
  const auto s = simulate_text("[1, -1, 1, -1]");
  EXPECT_EQ((*s)->peaks()[0].held, 1);
}

// Two static inputs, activations and outputs, one incoming gradient, one of the input and operands:
// a plan counts all that is held.
TEST(Memory, BytesAreThoseOfAPlan) {
  SimulationOptions options{.memory_plan = PlanOptions{}};
  options.check.modules.list = {
      {.name = "mlp",
       .flags = {.delay_wgrad = true},
       .bytes = {.input = 10, .output = 20, .activations = 100, .operands = 30}}};
  options.check.modules.layers = {{{0}}};
  const auto s = simulate_text("[1, 1, -1, -1, -1.5, -1.5]", options);
  ASSERT_TRUE((*s)->planned());
  CheckOptions check_options = s->options.check;
  check_options.plan.kind = PlanKind::Safe;
  const CheckResult judged = check(s->input, check_options);
  ASSERT_TRUE(judged.plan);
  EXPECT_EQ((*s)->planned()->ranks[0].peak(), judged.plan->ranks[0].peak())
      << "it is what `check` says";
  EXPECT_GT((*s)->planned()->ranks[0].peak(), 2 * (10 + 100 + 20));

  options.memory_plan->kind = PlanKind::Te;
  EXPECT_EQ((*simulate_text("[1, 1, -1, -1]", options))->planned()->kind, PlanKind::Te);
  options.memory_plan->kind = PlanKind::McoreLocal;
  EXPECT_EQ((*simulate_text("[1, 1, -1, -1]", options))->planned()->kind, PlanKind::McoreLocal);
}

TEST(Memory, BytesAreUnknownWithoutSizesOrUnlessAskedFor) {
  SimulationOptions options{.memory_plan = PlanOptions{}};
  EXPECT_FALSE((*simulate_text("[1, -1]", options))->planned());
  options.check.modules.list = {{.name = "mlp", .bytes = {.input = 10}}};
  options.check.modules.layers = {{{0}}};
  EXPECT_FALSE((*simulate_text("[1, -1]", options))->planned());
  options.check.modules.list.front().bytes = {.input = 1, .output = 1, .activations = 1};
  EXPECT_TRUE((*simulate_text("[1, -1]", options))->planned());
  options.memory_plan.reset();
  EXPECT_FALSE((*simulate_text("[1, -1]", options))->planned());
}

TEST(Memory, TextOfAModel) {
  EXPECT_EQ(*read_memory("f=1,b=-0.5,w=-0.5"), kHalf);
  EXPECT_EQ(*read_memory("w=-1,f=1"), MemoryChange{});
  EXPECT_EQ(
      read_memory("f=1").error(),
      "f, b and w add up to 1: what a forward takes, from 0, its backward and weight gradient "
      "give up");
  EXPECT_NE(read_memory("f=1,x=-1").error().find("`x=-1` is no change of memory"),
            std::string::npos);
  EXPECT_FALSE(read_memory("f=-1,b=0,w=1").has_value());
  EXPECT_FALSE(read_memory("f=inf,b=0,w=-inf").has_value());
  EXPECT_FALSE(read_memory("").has_value());
}

}  // namespace
}  // namespace capo
