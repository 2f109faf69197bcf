// Plan `mcore-local` on orders that one can follow by hand. Longer ones, and replays in another
// order, are tests/properties/local_graphs_test.cpp's.

#include "core/frameworks/megatron/local_graphs.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

using testing_support::all_of;
using testing_support::PlannedStep;
using testing_support::read_schedule;
using testing_support::sized_module;

class LocalPlanOf {
 public:
  explicit LocalPlanOf(const std::string& statements)
      : step_(read_schedule(statements), all_of(sized_module())),
        plan_(step_.plan(PlanKind::McoreLocal)) {}

  [[nodiscard]] const PlannedStep& step() const { return step_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const RankMemory& memory(std::size_t rank = 0) const {
    return plan_.ranks.at(rank);
  }
  [[nodiscard]] BufferId id(BufferKind kind, std::int32_t microbatch, std::int32_t layer = 0,
                            std::int32_t chunk = 1, std::int32_t rank = 0) const {
    return step_.table().id(rank, chunk, layer, microbatch, kind);
  }
  [[nodiscard]] std::int64_t at(BufferKind kind, std::int32_t microbatch,
                                std::int32_t layer = 0) const {
    const std::int64_t address = plan_.at(id(kind, microbatch, layer));
    EXPECT_EQ(region_of(address), Region::Pool);
    return offset_of(address);
  }

 private:
  PlannedStep step_;
  Plan plan_;
};

// An input has 8 bytes, as has an output; 34 are kept.
TEST(LocalGraphs, KeepOfAMicrobatchUnderWayWhatItsBackwardReads) {
  const LocalPlanOf plan("ranks 1\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n");
  EXPECT_EQ(plan.at(BufferKind::StaticInput, 0), 0);
  EXPECT_EQ(plan.at(BufferKind::Activations, 0), 8);
  EXPECT_EQ(plan.at(BufferKind::GradOutput, 0), 42) << "where the output was, which was copied";
  EXPECT_EQ(plan.at(BufferKind::StaticInput, 1), 0) << "free since B1.0";
  EXPECT_EQ(plan.memory().pool, 42 + 16 + 16) << "both copies beside the graphs' 58";
  EXPECT_EQ(plan.memory().input_slots, 0U) << "there are no slots of inputs";
  EXPECT_EQ(plan.memory().peak_entry, 1U);
}

TEST(LocalGraphs, CopyOutWhatLeavesAChunk) {
  const LocalPlanOf plan("ranks 1\nmicrobatches 1\nrank 0: F1.0 B1.0\n");
  const BufferId output = plan.id(BufferKind::Output, 0);
  const BufferId grad_input = plan.id(BufferKind::GradInput, 0);
  EXPECT_EQ(region_of(plan.plan().at(output)), Region::Copies);
  EXPECT_EQ(region_of(plan.plan().at(grad_input)), Region::Copies);
  EXPECT_EQ(plan.plan().made_at(output), address_in(Region::Pool, 42));
  EXPECT_EQ(plan.plan().made_at(grad_input), address_in(Region::Pool, 50));
}

TEST(LocalGraphs, ReadTheTensorThatTheirNeighbourMade) {
  const LocalPlanOf plan("ranks 1\nmicrobatches 1\nlayers 3\nrank 0: F1.0 B1.0\n");
  for (const std::int32_t layer : {1, 2}) {
    const BufferId input = plan.id(BufferKind::StaticInput, 0, layer);
    EXPECT_EQ(plan.plan().tensor_of(input), plan.id(BufferKind::Output, 0, layer - 1));
    EXPECT_EQ(plan.plan().at(input), plan.plan().at(plan.plan().tensor_of(input)));
    const BufferId gradient = plan.id(BufferKind::GradOutput, 0, layer - 1);
    EXPECT_EQ(plan.plan().tensor_of(gradient), plan.id(BufferKind::GradInput, 0, layer));
  }
  EXPECT_TRUE(plan.step().hazards(plan.plan()).empty());
}

TEST(LocalGraphs, ReadACopyWhereTheirNeighboursTensorHasAnotherSize) {
  Module wide = sized_module();
  wide.name = "wide";
  wide.bytes.input = 16;
  const PlannedStep step(read_schedule("ranks 1\nmicrobatches 1\nlayers 2\nrank 0: F1.0 B1.0\n"),
                         {.list = {sized_module(), wide}, .layers = {{{0, 1}}}});
  const Plan plan = step.plan(PlanKind::McoreLocal);
  const BufferId input = step.table().id(0, 1, 1, 0, BufferKind::StaticInput);
  EXPECT_EQ(plan.tensor_of(input), input);
  EXPECT_NE(plan.at(input), plan.at(step.table().id(0, 1, 0, 0, BufferKind::Output)));
  EXPECT_TRUE(step.hazards(plan).empty());
}

// Rank 1 hands a gradient back while it goes on: the copy that is being sent is not taken.
TEST(LocalGraphs, HoldACopyUntilItsSendIsOver) {
  const LocalPlanOf plan(
      "ranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
  const auto copy = [&](std::int32_t microbatch) {
    return plan.plan().at(plan.id(BufferKind::GradInput, microbatch, 0, 1, 1));
  };
  EXPECT_NE(copy(0), copy(1)) << "nothing tells rank 1 that the first send is over";
  EXPECT_TRUE(plan.step().hazards(plan.plan()).empty());
}

TEST(LocalGraphs, AreHurtByAReplayInAnotherOrder) {
  const LocalPlanOf capture("ranks 1\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n");
  const LocalPlanOf replay("ranks 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1\n");
  const auto hazards = replay.step().hazards(capture.plan());
  ASSERT_FALSE(hazards.empty());
  EXPECT_EQ(hazards.front().reader.entry, 2U);
  EXPECT_EQ(hazards.front().writer.entry, 1U);
}

TEST(LocalGraphs, OfAChunkWithoutLayersTakeNothing) {
  const LocalPlanOf plan("ranks 1\nmicrobatches 1\nlayers 0\nrank 0: F1.0 B1.0\n");
  EXPECT_EQ(plan.memory().peak(), 0);
}

TEST(LocalGraphs, KnowTheLeastThatAPlanWithoutHazardsTakes) {
  const LocalPlanOf plan("ranks 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1\n");
  EXPECT_EQ(plan.memory().lower_bound, plan.step().plan(PlanKind::Safe).ranks.at(0).lower_bound);
  EXPECT_GE(plan.memory().peak(), plan.memory().lower_bound);
}

}  // namespace
}  // namespace capo
