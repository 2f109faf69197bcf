// Megatron's own orders with layers as graphs, against what does not share a line with the verdict:
// the oracle says of their transfers whether they end and whether two are mixed up, and running
// them says whether gradients come out.

#include "tests/support/megatron_grid.h"

#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"
#include "run/host/host_engine.h"
#include "testing/oracle_pipeline.h"
#include "testing/truth/judge.h"
#include "testing/truth/tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::grid_options;
using testing_support::GridStep;
using testing_support::input_of;
using testing_support::megatron_grid;

std::vector<Environment> environments() {
  std::vector<Environment> all;
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      all.push_back({.communicators = layout, .transfers = mode});
    }
  }
  return all;
}

// The steps that an interpreter gets through: pipelines of up to `ranks` ranks with up to `chunks`
// chunks of up to `layers` layers on each.
std::vector<GridStep> steps_up_to(std::int64_t ranks, std::int64_t chunks, std::int64_t layers) {
  std::vector<GridStep> steps = megatron_grid();
  std::erase_if(steps, [&](const GridStep& step) {
    return step.pipeline > ranks || step.virtual_stages > chunks ||
           step.microbatches > 2 * step.pipeline ||
           *std::max_element(step.layers.begin(), step.layers.end()) > layers;
  });
  return steps;
}

TEST(MegatronGrid, TransfersEndAndMeetWhereTheOracleSaysSo) {
  std::size_t asked = 0;
  for (const GridStep& step : steps_up_to(4, 3, 4)) {
    const Input input = input_of(step);
    for (const Environment& environment : environments()) {
      CheckOptions options = grid_options();
      options.environment = environment;
      const Context context(input, options);
      const Wiring& wiring = *context.wirings().front();
      if (!wiring.megatron().faults.empty()) continue;
      const CheckResult result = check(context);
      const auto pipeline = oracle_pipeline(wiring.lowered(), wiring.map(), environment);
      EXPECT_EQ(result.finishes, oracle::finishes(pipeline)) << name_of(step);
      EXPECT_EQ(result.diagnostics.seen("T08") > 0, oracle::mixes_up(pipeline)) << name_of(step);
      ++asked;
    }
  }
  EXPECT_GE(asked, 500U);
}

TEST(MegatronGrid, GradientsComeOutWhereTheVerdictSaysSo) {
  Tally tally;
  for (const GridStep& step : steps_up_to(3, 2, 2)) {
    for (const Communicators layout : {Communicators::PerRank, Communicators::PerEdge}) {
      TruthCase of{.words = name_of(step), .module = "grouped-mlp", .input = input_of(step)};
      of.declared = grid_options();
      of.declared.modules.list.front().flags = {.delay_wgrad = true,
                                                .fuse_wgrad_accumulation = true};
      of.declared.environment.communicators = layout;
      of.declared.environment.transfers = TransferMode::Rendezvous;
      run::host::HostEngine engine;
      const auto line = judge_truth(of, engine);
      ASSERT_TRUE(line.has_value()) << line.error().message;
      EXPECT_NE(line->came, Came::Disagrees) << to_text(*line);
      tally.add(*line);
    }
  }
  EXPECT_GE(tally.accepted_right, 20U);
  EXPECT_GE(tally.rejected_wrong, 4U);
}

}  // namespace
}  // namespace capo::testing
