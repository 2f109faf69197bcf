// Plan `te` on orders that one can follow by hand: slots of static inputs, one gradient a
// signature, and the pool. What graph.py itself does with longer ones is te_vectors_test.cpp's.

#include "core/frameworks/te/reuse.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::all_of;
using testing_support::PlannedStep;
using testing_support::read_schedule;
using testing_support::sized_module;

constexpr Aliases kBoth{.input = true, .grad_output = true};

Schedule one_rank(const std::string& order, std::int32_t microbatches) {
  return read_schedule("ranks 1\nmicrobatches " + std::to_string(microbatches) +
                       "\nrank 0: " + order + "\n");
}

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

// A plan and where it puts things.
class TePlanOf {
 public:
  explicit TePlanOf(const Schedule& schedule, const ModuleTable& modules = {},
                    const PlanOptions& options = {})
      : step_(schedule, modules, options), plan_(step_.plan(PlanKind::Te)) {}

  [[nodiscard]] const RankMemory& memory() const { return plan_.ranks.at(0); }
  [[nodiscard]] const PlannedStep& step() const { return step_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// The offset of a buffer, in the region that its kind belongs to.
  [[nodiscard]] std::int64_t at(BufferKind kind, std::int32_t microbatch, std::int32_t chunk = 1,
                                std::int32_t layer = 0) const {
    const std::int64_t address = plan_.address[step_.table().id(0, chunk, layer, microbatch, kind)];
    if (address == kNowhere) return kNowhere;
    const Region region = kind == BufferKind::StaticInput  ? Region::StaticInputs
                          : kind == BufferKind::GradOutput ? Region::GradOutputs
                                                           : Region::Pool;
    EXPECT_EQ(region_of(address), region);
    return offset_of(address);
  }

 private:
  PlannedStep step_;
  Plan plan_;
};

// --- static inputs -------------------------------------------------------------------------------

TEST(TePlan, AForwardTakesTheOldestInputThatABackwardFreed) {
  const TePlanOf plan(one_rank("F1.0 F1.1 B1.0 B1.1 F1.2 F1.3 F1.4 B1.2 B1.3 B1.4", 5));
  EXPECT_EQ(plan.memory().input_slots, 3U);
  EXPECT_EQ(plan.memory().static_inputs, 3);
  std::vector<std::int64_t> slots;
  for (std::int32_t m = 0; m < 5; ++m) slots.push_back(plan.at(BufferKind::StaticInput, m));
  EXPECT_EQ(slots, (std::vector<std::int64_t>{0, 1, 0, 1, 2}));
}

TEST(TePlan, AWeightGradientFreesNothingOfIt) {
  const TePlanOf plan(one_rank("F1.0 B1.0 F1.1 W1.0 B1.1 W1.1", 2));
  EXPECT_EQ(plan.memory().input_slots, 1U) << "freed at B1.0, whatever W1.0 reads";
}

TEST(TePlan, LayersGiveTheirInputsBackFromTheFirstToTheLast) {
  Schedule schedule = one_rank("F1.0 B1.0 F1.1 B1.1", 2);
  schedule.ranks[0].layers = list_of({3});
  const TePlanOf plan(schedule);
  for (std::int32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(plan.at(BufferKind::StaticInput, 0, 1, layer), layer);
    EXPECT_EQ(plan.at(BufferKind::StaticInput, 1, 1, layer), layer);
  }
}

TEST(TePlan, InputsThatLookUnlikeAreNotShared) {
  ModuleTable modules{.list = {sized_module(), sized_module()}, .layers = {{{0}, {1}}}};
  modules.list[1].bytes.input = 5;
  const TePlanOf plan(one_rank("F1.0 B1.0 F2.0 B2.0 F1.1 B1.1 F2.1 B2.1", 2), modules);
  EXPECT_EQ(plan.memory().input_slots, 2U);
  EXPECT_EQ(plan.memory().static_inputs, 8 + 5);
  EXPECT_EQ(plan.at(BufferKind::StaticInput, 1, 2), 8);
  EXPECT_EQ(plan.memory().grad_outputs, 8) << "their outputs look alike";
}

// --- gradients -----------------------------------------------------------------------------------

TEST(TePlan, AllBackwardsOfASignatureWriteOneGradient) {
  const TePlanOf plan(one_rank("F1.0 F2.0 F1.1 B2.0 B1.0 B1.1 F2.1 B2.1", 2));
  EXPECT_EQ(plan.memory().grad_outputs, 1);
  for (const std::int32_t chunk : {1, 2}) {
    for (const std::int32_t m : {0, 1}) EXPECT_EQ(plan.at(BufferKind::GradOutput, m, chunk), 0);
  }
}

TEST(TePlan, GradientsOfOutputsThatLookUnlikeAreNotShared) {
  ModuleTable modules{.list = {sized_module(), sized_module()}, .layers = {{{0}, {1}}}};
  modules.list[1].bytes.output = 5;
  const TePlanOf plan(one_rank("F1.0 F2.0 B2.0 B1.0", 1), modules);
  EXPECT_EQ(plan.memory().grad_outputs, 8 + 5);
}

// --- the pool ------------------------------------------------------------------------------------

// F0 F1: outputs 0 and 1. B0: grad input 2; output 0 is free. B1: grad input 0; output 1 is free,
// and so is the grad input of B0, since another backward has been captured.
TEST(TePlan, OutputsLiveToTheirBackwardAndGradInputsToTheNextBackward) {
  const TePlanOf plan(one_rank("F1.0 F1.1 B1.0 B1.1 F1.2 F1.3 B1.2 B1.3", 4));
  EXPECT_EQ(plan.at(BufferKind::Output, 0), 0);
  EXPECT_EQ(plan.at(BufferKind::Output, 1), 1);
  EXPECT_EQ(plan.at(BufferKind::GradInput, 0), 2);
  EXPECT_EQ(plan.at(BufferKind::GradInput, 1), 0);
  EXPECT_EQ(plan.at(BufferKind::Output, 2), 2) << "the block that was freed last";
  EXPECT_EQ(plan.at(BufferKind::Output, 3), 1);
  EXPECT_EQ(plan.memory().pool, 4) << "with the grad input of B2 there are four at once";
}

// W0 lets its copies go after the grad input of B0 is made and before that is let go, at B1. What
// W1 asks for is of one size with all of them, and gets what may still be read; then the block
// freed last.
TEST(TePlan, AGradInputThatMayStillBeReadIsTakenFirst) {
  const TePlanOf plan(one_rank("F1.0 F1.1 B1.0 B1.1 W1.0 W1.1", 2), {}, {.aliases = Aliases{}});
  EXPECT_EQ(plan.at(BufferKind::Scratch, 0), plan.at(BufferKind::GradInput, 0));
  EXPECT_EQ(plan.at(BufferKind::Scratch, 1), plan.at(BufferKind::Operands, 0));
}

TEST(TePlan, AGradInputThatMayStillBeReadIsTakenBeforeWhatIsFreedLater) {
  const TePlanOf plan(one_rank("F1.0 F2.0 F2.1 B2.0 B1.0 W2.0 F1.1 B2.1 B1.1 W2.1", 2), {},
                      {.aliases = Aliases{.grad_output = true}});
  EXPECT_EQ(plan.at(BufferKind::Activations, 1), plan.at(BufferKind::GradInput, 0, 2))
      << "though W2 lets go of its copy of the input later";
}

TEST(TePlan, GradInputsWithinAChunkLiveToTheNextLayerDown) {
  Schedule schedule = one_rank("F1.0 B1.0", 1);
  schedule.ranks[0].layers = list_of({4});
  const TePlanOf plan(schedule);
  EXPECT_EQ(plan.at(BufferKind::GradInput, 0, 1, 3), 4) << "behind four outputs";
  EXPECT_EQ(plan.at(BufferKind::GradInput, 0, 1, 2), 3) << "the output of the layer above";
  EXPECT_EQ(plan.at(BufferKind::GradInput, 0, 1, 1), 4) << "the grad input two layers above";
  EXPECT_EQ(plan.memory().pool, 5);
}

TEST(TePlan, CopiesForTheWeightGradientLiveToIt) {
  const TePlanOf plan(one_rank("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1", 2), {}, {.aliases = Aliases{}});
  EXPECT_NE(plan.at(BufferKind::Operands, 0), plan.at(BufferKind::Operands, 1));
  EXPECT_NE(plan.at(BufferKind::Activations, 0), plan.at(BufferKind::Activations, 1));
  const TePlanOf alone(one_rank("F1.0 B1.0 W1.0 F1.1 B1.1 W1.1", 2), {}, {.aliases = Aliases{}});
  EXPECT_LT(alone.memory().pool, plan.memory().pool);
  const TePlanOf aliased(one_rank("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1", 2), {}, {.aliases = kBoth});
  EXPECT_EQ(aliased.at(BufferKind::Operands, 0), kNowhere);
}

// Each microbatch quantizes the weight for itself: its copies are there from F to B, and not to W.
TEST(TePlan, QuantizedWeightsLiveFromForwardToBackward) {
  Module module = sized_module();
  module.kind = ModuleKind::Linear;
  module.recipe = Recipe::Block;
  module.bytes.quantized_weight = 1000;
  const auto pool = [&](const std::string& order) {
    return TePlanOf(one_rank(order, 2), all_of(module)).memory().pool;
  };
  const TePlanOf apart(one_rank("F1.0 B1.0 F1.1 W1.0 B1.1 W1.1", 2), all_of(module));
  EXPECT_EQ(apart.at(BufferKind::QuantizedWeight, 0), apart.at(BufferKind::QuantizedWeight, 1));
  const std::int64_t one = pool("F1.0 B1.0 F1.1 B1.1");
  const std::int64_t two = pool("F1.0 F1.1 B1.0 B1.1");
  module.weight_cache = WeightCache::Device;
  EXPECT_EQ(pool("F1.0 B1.0 F1.1 B1.1") + 1000, one);
  EXPECT_EQ(pool("F1.0 F1.1 B1.0 B1.1") + 2000, two);
}

TEST(TePlan, BlocksOfAnotherSizeAreNotTaken) {
  const TePlanOf plan(one_rank("F1.0 B1.0 F1.1 B1.1", 2), all_of(sized_module()),
                      {.aliases = kBoth});
  // Activations 34, output 8, grad input 8; then the first two again and, since the grad input of
  // B0 is there until B1 has been captured, 8 more.
  EXPECT_EQ(plan.at(BufferKind::Activations, 0), 0);
  EXPECT_EQ(plan.at(BufferKind::Activations, 1), 0);
  EXPECT_EQ(plan.at(BufferKind::Output, 1), plan.at(BufferKind::Output, 0));
  EXPECT_EQ(plan.memory().pool, 34 + 8 + 8 + 8);
}

TEST(TePlan, SaysWhereThePeakIsFirstReached) {
  const TePlanOf plan(one_rank("F1.0 F1.1 B1.0 F1.2 B1.1 B1.2", 3));
  EXPECT_EQ(plan.memory().peak_entry, 4U) << "B1.1 cannot have the grad input of B1.0";
  EXPECT_EQ(plan.memory().peak(), 2 + 1 + 4);
}

// --- chunks without layers -----------------------------------------------------------------------

TEST(TePlan, AChunkWithoutLayersTakesAndFreesNothing) {
  const std::string order = "F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1";
  Schedule schedule = one_rank(order, 2);
  schedule.ranks[0].layers = list_of({1, 0});
  const TePlanOf plan(schedule);
  const TePlanOf without(one_rank("F1.0 F1.1 B1.0 B1.1", 2));
  EXPECT_EQ(plan.memory().peak(), without.memory().peak());
  for (const std::int32_t m : {0, 1}) {
    EXPECT_EQ(plan.at(BufferKind::GradInput, m), without.at(BufferKind::GradInput, m));
  }
  schedule.ranks[0].layers = list_of({0, 1});
  const TePlanOf first(schedule);
  EXPECT_EQ(first.memory().peak(), without.memory().peak());
  for (const std::int32_t m : {0, 1}) {
    EXPECT_EQ(first.at(BufferKind::GradInput, m, 2), without.at(BufferKind::GradInput, m));
  }
  schedule.ranks[0].layers = list_of({0, 0});
  EXPECT_EQ(TePlanOf(schedule).memory().peak(), 0);
}

// --- beside capo's own ---------------------------------------------------------------------------

TEST(TePlan, KnowsTheLeastThatAPlanWithoutHazardsCanTake) {
  const TePlanOf plan(one_rank("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1", 2), {}, {.aliases = kBoth});
  EXPECT_EQ(plan.memory().lower_bound, plan.step().plan(PlanKind::Safe).ranks.at(0).lower_bound);
  EXPECT_LT(plan.memory().peak(), plan.memory().lower_bound) << "at the price of hazards";
  EXPECT_FALSE(plan.step().hazards(plan.plan()).empty());
}

// Megatron takes the layers of a chunk apart where it overlaps their exchanges: the same memory,
// layer by layer.
TEST(TePlan, OfLayersThatRunApartIsThatOfTheirChunk) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nlayers 2\nplacement loop\n"
      "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n");
  const std::vector<Kind> exchanges{Kind::DispatchForward, Kind::CombineForward,
                                    Kind::DispatchBackward, Kind::CombineBackward};
  const ModuleTable modules{.list = {sized_module()}, .layers = {{{0}}}};
  const PlannedStep whole(schedule, modules, {}, {.p2p = MegatronCalls::Batch});
  const PlannedStep apart(schedule, modules, {}, {.p2p = MegatronCalls::Batch, .ep_overlap = true},
                          {{.name = "first", .members = {0}, .actions = exchanges},
                           {.name = "last", .members = {1}, .actions = exchanges}});
  ASSERT_GT(apart.course().work[0].size(), whole.course().work[0].size());
  const Plan of_whole = whole.plan(PlanKind::Te);
  const Plan of_apart = apart.plan(PlanKind::Te);
  EXPECT_EQ(of_apart.ranks[0].static_inputs, of_whole.ranks[0].static_inputs);
  EXPECT_TRUE(apart.hazards(of_apart).empty());
}

}  // namespace
}  // namespace capo
