// Megatron's orders of all ranks as a schedule: its placement and what it declares, printed in the
// order language, and the way back to a list for every rank.

#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace capo::megatron {
namespace {

Schedule schedule(const Request& request) {
  return schedule_of(orders_of(request).value());
}

TEST(MegatronSchedule, ChunkByChunkIsALoop) {
  EXPECT_EQ(print_order_file(schedule(
                {.configuration = {.pipeline = 2, .virtual_stages = 2, .microbatches = 2}})),
            "capo 1\n"
            "ranks 2\n"
            "microbatches 2\n"
            "placement loop\n"
            "p2p overlap\n"
            "rank 0 chunks 2\n"
            "rank 0 delayed none\n"
            "rank 0: F1 F1 F2 F2 B2 B2 B1 B1\n"
            "rank 1 chunks 2\n"
            "rank 1 delayed none\n"
            "rank 1: F1 F1 F2 B2 F2 B2 B1 B1\n");
}

TEST(MegatronSchedule, LayersOfAChunkAreDeclaredWhereTheyAreStated) {
  const Schedule stated =
      schedule({.configuration = {.pipeline = 2, .microbatches = 2}, .layers_per_chunk = {3}});
  EXPECT_EQ(stated.ranks[1].layers, (Layers{.form = Layers::Form::List, .values = {3}}));
  EXPECT_EQ(stated.ranks[1].chunks, 1);
}

TEST(MegatronSchedule, LayerByLayerTheStagesOfTheLoopAreCutIntoTheirLayers) {
  EXPECT_EQ(print_order_file(schedule({.configuration = {.pipeline = 2,
                                                         .virtual_stages = 2,
                                                         .microbatches = 2,
                                                         .ep_overlap = true},
                                       .layers_per_chunk = {1, 2},
                                       .weight_gradients = WeightGradients::Delayed})),
            "capo 1\n"
            "ranks 2\n"
            "microbatches 2\n"
            "placement custom\n"
            "p2p overlap\n"
            "rank 0 delayed 1,2,3\n"
            "rank 0 stages 0,2,3\n"
            "rank 0 model-chunks 1,2\n"
            "rank 0: F1 F1 F2 F3 F2 F3 B3 W3 B2 W2 B3 W3 B2 W2 B1 W1 B1 W1\n"
            "rank 1 delayed 1,2,3\n"
            "rank 1 stages 1,4,5\n"
            "rank 1 model-chunks 1,2\n"
            "rank 1: F1 F1 F2 F3 F2 B3 W3 F3 B2 W2 B3 W3 B2 W2 B1 W1 B1 W1\n");
}

TEST(MegatronSchedule, AChunkWithoutALayerHasNoStage) {
  const Schedule made = schedule(
      {.configuration = {.pipeline = 2, .virtual_stages = 3, .microbatches = 2, .ep_overlap = true},
       .layers_per_chunk = {2, 0, 1}});
  EXPECT_EQ(made.ranks[0].stages, (std::vector<std::int32_t>{0, 1, 4}));
  EXPECT_EQ(made.ranks[1].stages, (std::vector<std::int32_t>{2, 3, 5}));
}

// Surplus counts are not Megatron's concern, and no stages.
TEST(MegatronSchedule, LayerCountsBeyondTheChunksAreLeftOut) {
  const Schedule made = schedule(
      {.configuration = {.pipeline = 2, .virtual_stages = 1, .microbatches = 2, .ep_overlap = true},
       .layers_per_chunk = {2, 7}});
  EXPECT_EQ(made.ranks[0].chunks, 2);
  EXPECT_EQ(made.ranks[1].stages, (std::vector<std::int32_t>{2, 3}));
}

// The stages of every placement are all there, each once; a layer feeds the next in its chunk.
TEST(MegatronSchedule, EveryStageIsOnOneRankAndListsComeBackAsTheyWere) {
  for (std::int64_t pp = 1; pp <= 4; ++pp) {
    for (std::int64_t vp = 1; vp <= 3; ++vp) {
      for (const bool overlap : {false, true}) {
        if (pp == 1 && vp > 1) continue;
        Request request{.configuration = {.pipeline = pp,
                                          .virtual_stages = vp,
                                          .microbatches = 2 * pp,
                                          .ep_overlap = overlap},
                        .weight_gradients = WeightGradients::Delayed};
        for (std::int64_t c = 0; c < vp; ++c) request.layers_per_chunk.push_back(1 + c * c);
        const Generated generated = orders_of(request).value();
        const Schedule made = schedule_of(generated);
        std::vector<std::int32_t> stages;
        for (std::size_t r = 0; r < made.ranks.size(); ++r) {
          const RankOrder& rank = made.ranks[r];
          EXPECT_TRUE(std::is_sorted(rank.stages.begin(), rank.stages.end()));
          stages.insert(stages.end(), rank.stages.begin(), rank.stages.end());
          EXPECT_EQ(print_te_list(to_te_list(rank, rank.order).value()),
                    print_te_list(generated.orders[r]));
        }
        std::sort(stages.begin(), stages.end());
        std::vector<std::int32_t> wanted(stages.size());
        std::iota(wanted.begin(), wanted.end(), 0);
        EXPECT_EQ(stages, wanted);
      }
    }
  }
}

}  // namespace
}  // namespace capo::megatron
