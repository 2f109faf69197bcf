// capo's own plan: what it takes for orders that one can follow by hand, and that it shares no
// memory whose uses are not ordered, whatever runs beside what.

#include "tests/core/graph/order_text.h"
#include "tests/core/graph/random_schedule.h"
#include "tests/core/plan/planned.h"
#include "tests/core/plan/sharing.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::all_of;
using testing_support::PlannedStep;
using testing_support::random_schedule;
using testing_support::read_schedule;
using testing_support::Sharing;
using testing_support::sized_module;

constexpr Aliases kBoth{.input = true, .grad_output = true};

Schedule one_rank(const std::string& order, std::int32_t microbatches) {
  return read_schedule("ranks 1\nmicrobatches " + std::to_string(microbatches) +
                       "\nrank 0: " + order + "\n");
}

RankMemory memory_of(const PlannedStep& step) {
  return step.plan(PlanKind::Safe).ranks.at(0);
}

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

// --- by hand -------------------------------------------------------------------------------------

// Static input and output while it waits; with the backward, grad output and grad input.
TEST(SafePlan, OfOneMicrobatchHoldsFourBuffers) {
  const PlannedStep step(one_rank("F1.0 B1.0", 1));
  const RankMemory memory = memory_of(step);
  EXPECT_EQ(memory.pool, 4);
  EXPECT_EQ(memory.lower_bound, 4);
  EXPECT_EQ(memory.peak_entry, 1U);
  EXPECT_EQ(memory.static_inputs, 0);
  EXPECT_EQ(memory.grad_outputs, 0);
  EXPECT_EQ(memory.input_slots, 0U);
}

TEST(SafePlan, TakesNoMoreForMicrobatchesOneByOne) {
  const PlannedStep step(one_rank("F1.0 B1.0 F1.1 B1.1 F1.2 B1.2", 3));
  EXPECT_EQ(memory_of(step).pool, 4);
  EXPECT_EQ(memory_of(step).peak_entry, 1U) << "where it is first reached";
}

TEST(SafePlan, HoldsWhatWaits) {
  const PlannedStep step(one_rank("F1.0 F1.1 F1.2 B1.0 B1.1 B1.2", 3));
  EXPECT_EQ(memory_of(step).pool, 3 * 2 + 2);
  EXPECT_EQ(memory_of(step).peak_entry, 3U);
}

// Both operands are kept to the weight gradient.
TEST(SafePlan, KeepsWhatTheWeightGradientReads) {
  const PlannedStep step(one_rank("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1", 2), {}, {.aliases = kBoth});
  const Plan plan = step.plan(PlanKind::Safe);
  EXPECT_EQ(plan.ranks[0].pool, 2 + 4) << "input and gradient of microbatch 0 beside all of 1";
  EXPECT_TRUE(step.hazards(plan).empty());
  EXPECT_FALSE(step.hazards(PlanKind::Te).empty());
}

// A backward frees what the forward of a linear kept, since W reads the input itself; W of an
// attention reads both. The second backward runs while the first weight gradient waits.
TEST(SafePlan, KeepsWhatForwardMadeToTheWeightGradientsOfTwoProducts) {
  const auto planned = [](ModuleKind kind) {
    Module module = sized_module();
    module.kind = kind;
    return PlannedStep(one_rank("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1", 2), all_of(module),
                       {.aliases = kBoth});
  };
  const PlannedStep linear = planned(ModuleKind::Linear);
  const PlannedStep attention = planned(ModuleKind::Attention);
  for (const PlanKind kind : {PlanKind::Safe, PlanKind::Te}) {
    EXPECT_EQ(attention.plan(kind).ranks.at(0).pool, linear.plan(kind).ranks.at(0).pool + 34);
  }
  EXPECT_TRUE(attention.hazards(PlanKind::Safe).empty());
  EXPECT_EQ(attention.hazards(PlanKind::Te).size(), linear.hazards(PlanKind::Te).size());
}

// A composite's members run beside each other: the backward's memory is not free for the forward.
TEST(SafePlan, SharesNothingWithinAComposite) {
  const PlannedStep apart(one_rank("F1.0 B1.0 F1.1 B1.1", 2));
  const PlannedStep beside(one_rank("F1.0 (B1.0 F1.1) B1.1", 2));
  EXPECT_EQ(memory_of(apart).pool, 4);
  EXPECT_EQ(memory_of(beside).pool, 6);
}

// F: input 8, activations 34, output 8. B: gradients 8 and 8, operands 12. W: scratch 8.
TEST(SafePlan, IsInBytesWhereSizesAreDeclared) {
  const PlannedStep whole(one_rank("F1.0 B1.0", 1), all_of(sized_module()));
  EXPECT_EQ(memory_of(whole).pool, 50 + 16);
  const PlannedStep delayed(one_rank("F1.0 B1.0 W1.0", 1), all_of(sized_module()),
                            {.aliases = Aliases{}});
  EXPECT_EQ(memory_of(delayed).pool, 50 + 16 + 12);
  EXPECT_EQ(memory_of(delayed).lower_bound, 50 + 16 + 12);
}

TEST(SafePlan, HoldsAQuantizedWeightFromForwardToBackward) {
  Module module = sized_module();
  module.kind = ModuleKind::Linear;
  module.recipe = Recipe::Block;
  module.bytes.quantized_weight = 1000;
  const auto pool = [&](const std::string& order) {
    const PlannedStep step(one_rank(order, 2), all_of(module));
    EXPECT_EQ(memory_of(step).pool, memory_of(step).lower_bound);
    return memory_of(step).pool;
  };
  EXPECT_EQ(pool("F1.0 B1.0 F1.1 B1.1"), 50 + 16 + 1000);
  EXPECT_EQ(pool("F1.0 F1.1 B1.0 B1.1"), 2 * 50 + 16 + 2000);
  EXPECT_LT(pool("F1.0 B1.0 F1.1 W1.0 B1.1 W1.1"), 2000) << "W reads none";
}

TEST(SafePlan, CountsWeightsBesideThePeak) {
  Module module = sized_module();
  module.bytes.weight = 1000;
  Schedule schedule = one_rank("F1.0 B1.0", 1);
  schedule.ranks[0].layers = list_of({3});
  const PlannedStep step(schedule, all_of(module));
  EXPECT_EQ(memory_of(step).weights, 3000);
  EXPECT_EQ(memory_of(step).peak(), memory_of(step).pool);
}

// Whatever is declared to be kept beside an aliased operand goes with its weight gradient.
TEST(SafePlan, GivesEverythingBackWhateverIsAliased) {
  for (const auto& kind : {std::optional<ModuleKind>{}, std::optional{ModuleKind::Attention}}) {
    Module module = sized_module();
    module.kind = kind;
    for (const auto& aliases :
         {std::optional<Aliases>{}, std::optional{Aliases{}}, std::optional{kBoth},
          std::optional{Aliases{.input = true}}, std::optional{Aliases{.grad_output = true}}}) {
      const PlannedStep one(one_rank("F1.0 B1.0 W1.0", 1), all_of(module), {.aliases = aliases});
      const PlannedStep four(
          one_rank("F1.0 B1.0 W1.0 F1.1 B1.1 W1.1 F1.2 B1.2 W1.2 F1.3 B1.3 W1.3", 4),
          all_of(module), {.aliases = aliases});
      EXPECT_EQ(memory_of(four).pool, memory_of(one).pool);
      EXPECT_EQ(memory_of(four).lower_bound, memory_of(one).lower_bound);
    }
  }
}

// The first layer's gradient is on its way while the next chunk of the model runs backward.
TEST(SafePlan, HoldsWhatAChunkOfTheModelHandsOn) {
  const std::string order = "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2";
  const PlannedStep kept(one_rank(order, 3));
  const PlannedStep handed(one_rank(order, 3), {}, {.model_chunks = {1}});
  EXPECT_EQ(memory_of(kept).pool, 8);
  const Plan plan = handed.plan(PlanKind::Safe);
  EXPECT_TRUE(handed.hazards(plan).empty());
  EXPECT_NE(plan.address[handed.table().id(0, 1, 0, 0, BufferKind::GradInput)],
            plan.address[handed.table().id(0, 1, 0, 1, BufferKind::GradInput)]);
}

// Layers of one backward run one after another: of the gradients between them two are there at a
// time.
TEST(SafePlan, HoldsTheGradientsOfOneLayerAtATime) {
  const auto pool = [](std::int64_t layers) {
    Schedule schedule = one_rank("F1.0 B1.0", 1);
    schedule.ranks[0].layers = list_of({layers});
    return memory_of(PlannedStep(schedule)).lower_bound;
  };
  EXPECT_EQ(pool(1), 2 * 1 + 2);
  EXPECT_LE(pool(8), 2 * 8 + 3);
}

TEST(SafePlan, TakesNothingForChunksWithoutLayers) {
  Schedule schedule = one_rank("F1.0 F2.0 B2.0 B1.0", 1);
  schedule.ranks[0].layers = list_of({1, 0});
  const PlannedStep step(schedule);
  EXPECT_EQ(memory_of(step).pool, 4);
  schedule.ranks[0].layers = list_of({0, 0});
  const PlannedStep nothing(schedule);
  EXPECT_EQ(memory_of(nothing).pool, 0);
}

// --- at random -----------------------------------------------------------------------------------

ModuleTable mixed_modules() {
  ModuleTable modules{.list = {sized_module(), sized_module(), sized_module()}, .layers = {}};
  modules.list[1].bytes = {.input = 16, .output = 4, .activations = 0, .operands = 7};
  modules.list[2].bytes = {.input = 4, .output = 16, .activations = 90, .operands = 0};
  modules.list[2].kind = ModuleKind::Linear;
  modules.list[2].recipe = Recipe::Block;
  modules.list[2].bytes.quantized_weight = 20;
  return modules;
}

// Chunks of one to three layers, each of any of the modules.
void draw_layers(Schedule& schedule, ModuleTable& modules, std::mt19937& random) {
  modules.layers.clear();
  for (RankOrder& rank : schedule.ranks) {
    rank.layers = list_of({});
    auto& of_rank = modules.layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < rank.chunks; ++chunk) {
      rank.layers.values.push_back(1 + static_cast<std::int64_t>(random() % 3));
      auto& of_chunk = of_rank.emplace_back();
      for (std::int64_t layer = 0; layer < rank.layers.values.back(); ++layer) {
        of_chunk.push_back(static_cast<std::int32_t>(random() % modules.list.size()));
      }
    }
  }
}

struct Tally {
  std::size_t plans = 0;
  std::size_t shared = 0;
};

void expect_sound(const PlannedStep& step, Tally& tally) {
  const Plan plan = step.plan(PlanKind::Safe);
  const Sharing sharing(step);
  EXPECT_EQ(sharing.unordered(plan), std::vector<std::string>{});
  EXPECT_EQ(step.hazards(plan).size(), 0U);
  for (const RankMemory& memory : plan.ranks) EXPECT_GE(memory.peak(), memory.lower_bound);
  ++tally.plans;
  tally.shared += sharing.shared(plan);
}

void expect_sound_at_random(bool weight_stream, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  Tally tally;
  for (int run = 0; run < 150; ++run) {
    SCOPED_TRACE(run);
    Schedule schedule = random_schedule({.ranks = 1 + below(3),
                                         .chunks = 2,
                                         .microbatches = 1 + below(4),
                                         .topology = run % 2 == 0 ? Topology::Loop : Topology::V,
                                         .delay = below(4) == 0 ? Delay::Never : Delay::Always},
                                        random);
    ModuleTable modules = mixed_modules();
    draw_layers(schedule, modules, random);
    const Aliases aliases{.input = below(2) == 0, .grad_output = below(2) == 0};
    const Environment environment{.communicators = static_cast<Communicators>(below(3)),
                                  .transfers = static_cast<TransferMode>(below(2)),
                                  .weight_stream = weight_stream};
    const PlannedStep step(schedule, modules, {.aliases = aliases}, environment);
    expect_sound(step, tally);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "ranks " << schedule.ranks.size();
      return;
    }
  }
  std::printf("%zu plans, in which %zu pairs of buffers share memory\n", tally.plans, tally.shared);
  EXPECT_GT(tally.shared, 10'000U);
}

TEST(SafePlan, SharesNothingThatTransfersLeaveUnordered) {
  expect_sound_at_random(false, 5);
}

TEST(SafePlan, SharesNothingThatAStreamOfWeightGradientsLeavesUnordered) {
  expect_sound_at_random(true, 6);
}

}  // namespace
}  // namespace capo
