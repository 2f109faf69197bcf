// Megatron's calls around orders that list layers: what is sent, when and to whom is the same as in
// the runtime's order of chunks, whatever the number of layers.

#include "core/base/index.h"
#include "core/frameworks/megatron/calls.h"
#include "core/frameworks/megatron/orders.h"
#include "tests/core/graph/order_text.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>

namespace capo {
namespace {

using testing_support::lines_of;
using testing_support::read_schedule;
using enum MegatronCalls;

using Lines = std::vector<std::string>;

Schedule layered(mcore::Configuration configuration, const std::vector<std::int64_t>& layers) {
  configuration.ep_overlap = true;
  return megatron::schedule_of(
      megatron::orders_of({.configuration = configuration,
                           .layers_per_chunk = layers,
                           .weight_gradients = megatron::WeightGradients::Delayed})
          .value());
}

Schedule runtime(mcore::Configuration configuration) {
  configuration.ep_overlap = true;
  return megatron::schedule_of(
      megatron::orders_of({.configuration = configuration, .which = megatron::Which::Runtime})
          .value());
}

std::int32_t model_chunk_of(const RankOrder& rank, std::int32_t layer) {
  std::int32_t chunk = 1;
  std::int32_t last = 0;
  for (const std::int32_t layers : rank.model_chunks) {
    last += layers;
    if (layer <= last) return chunk;
    ++chunk;
  }
  return layer;
}

// Each rank's transfers, with the chunk of the model and with how many computations of which
// microbatches of the model's chunks came before.
Lines transfers_of(const Schedule& schedule, MegatronCalls calls) {
  const MegatronLowering made = lower_megatron(schedule, calls, true);
  EXPECT_TRUE(made.faults.empty());
  Lines lines;
  for (std::size_t r = 0; r < made.lowered.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    std::string line;
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    for (const Step& step : made.lowered.ranks[r]) {
      const std::int32_t chunk = model_chunk_of(rank, step.chunk);
      const bool begins = step.chunk == 1 || model_chunk_of(rank, step.chunk - 1) != chunk;
      const bool ends = step.chunk == rank.chunks || model_chunk_of(rank, step.chunk + 1) != chunk;
      if (step.kind == Kind::Forward && ends) ++forwards;
      if (is_backward(step.kind) && begins) ++backwards;
      if (!is_transfer(step.kind)) continue;
      // The layer that reads or makes what is transferred is at the end of the chunk.
      const bool at_begin = step.kind == Kind::ReceiveForward || step.kind == Kind::SendBackward;
      EXPECT_TRUE(at_begin ? begins : ends);
      line += fmt::format("{}.{}.{}.{}@{},{} ", as_index(step.kind), chunk,
                          static_cast<std::int32_t>(step.microbatch), as_index(step.wait), forwards,
                          backwards);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

TEST(LayeredCalls, StandBetweenChunksOfTheModel) {
  const Schedule schedule =
      layered({.pipeline = 2, .virtual_stages = 2, .microbatches = 2}, {1, 2});
  const MegatronLowering made = lower_megatron(schedule, Overlap, false);
  ASSERT_TRUE(made.faults.empty());
  EXPECT_EQ(
      lines_of(made.lowered)[1],
      "recv-F1.0! F1.0 recv-F1.1! send-F1.0'! F1.1 recv-F2.0! send-F1.1'! F2.0 F3.0 recv-F2.1! "
      "F2.1 B3.0 W3.0 F3.1 B2.0 send-B2.0'+ W2.0 B3.1 W3.1 B2.1 recv-B1.0! send-B2.1'! W2.1 "
      "B1.0 recv-B1.1! send-B1.0'! W1.0 B1.1 send-B1.1'! W1.1");
}

TEST(LayeredCalls, AreThoseOfTheRuntimesOrderForAnyLayers) {
  const std::vector<std::vector<std::int64_t>> shapes{
      {1, 1, 1, 1}, {2, 2, 2, 2}, {1, 2, 3, 4}, {4, 1, 2, 1}, {3, 3, 1, 2}};
  int compared = 0;
  for (std::int64_t pipeline = 2; pipeline <= 8; ++pipeline) {
    for (std::int64_t virtual_stages = 2; virtual_stages <= 4; ++virtual_stages) {
      for (const std::int64_t times : {1, 2, 8}) {
        const mcore::Configuration configuration{.pipeline = pipeline,
                                                 .virtual_stages = virtual_stages,
                                                 .microbatches = times * pipeline};
        for (const MegatronCalls calls : {Batch, Overlap, Flush}) {
          const Lines by_chunk = transfers_of(runtime(configuration), calls);
          for (std::vector<std::int64_t> layers : shapes) {
            layers.resize(as_index(virtual_stages));
            SCOPED_TRACE(fmt::format("PP {} VP {} M {} {}", pipeline, virtual_stages,
                                     configuration.microbatches, name_of(calls)));
            EXPECT_EQ(transfers_of(layered(configuration, layers), calls), by_chunk);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 7 * 3 * 3 * 3 * 5);
}

TEST(LayeredCalls, ALayerOutOfItsPlaceIsNotMegatrons) {
  Schedule schedule = layered({.pipeline = 2, .virtual_stages = 2, .microbatches = 2}, {1, 2});
  std::vector<Entry>& order = schedule.ranks[0].order;
  ASSERT_EQ(order[2].chunk, 2);
  ASSERT_EQ(order[3].chunk, 3);
  std::swap(order[2], order[3]);
  const MegatronLowering made = lower_megatron(schedule, Overlap, false);
  ASSERT_EQ(made.faults.size(), 1U);
  EXPECT_EQ(made.faults[0],
            (RoutingFault{.kind = RoutingFault::Kind::Form, .rank = 0, .entry = 2}));
}

// Forwards take the layers of a chunk upwards from the first, backwards downwards from the last.
TEST(LayeredCalls, ATurnTakesTheLayersOfItsChunkOneByOne) {
  const auto order = [](const std::string& forward, const std::string& backward) {
    return forward + " F1.1 F2.1 F3.1 " + backward + " B3.1 B2.1 B1.1\n";
  };
  const std::string up = "F1.0 F2.0 F3.0";
  const std::string down = "B3.0 B2.0 B1.0";
  const auto faults = [&](const std::string& forward, const std::string& backward) {
    const Schedule schedule = read_schedule(
        "ranks 2\nmicrobatches 2\nplacement custom\n"
        "rank 0 stages 0,1,2\nrank 0 model-chunks 3\nrank 1 stages 3,4,5\nrank 1 model-chunks 3\n"
        "rank 0: " +
        order(forward, backward) + "rank 1: " + order(up, down));
    return lower_megatron(schedule, Batch, false).faults;
  };
  const auto at = [](std::uint32_t entry) {
    return std::vector{RoutingFault{.kind = RoutingFault::Kind::Form, .rank = 0, .entry = entry}};
  };
  EXPECT_TRUE(faults(up, down).empty());
  EXPECT_EQ(faults("F2.0 F1.0 F3.0", down), at(0));
  EXPECT_EQ(faults("F1.0 F3.0 F2.0", down), at(1));
  EXPECT_EQ(faults(up, "B3.0 B1.0 B2.0"), at(7));
}

}  // namespace
}  // namespace capo
