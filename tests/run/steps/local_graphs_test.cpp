// Steps under Megatron's local graphs: layers read each other's tensors in place, what leaves a
// chunk is copied out, and every gradient is to the bit that of eager execution; replayed in
// another order than captured, the victims are those that were predicted.

#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {
namespace {

const std::vector<std::string> kWholeSteps{
    "capo 1\nlayers 3\nrank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\n",
    "capo 1\nranks 2\nmicrobatches 3\nlayers 2\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\nrank 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n",
    "capo 1\nranks 2\nmicrobatches 2\nlayers 1,2\nplacement loop\n"
    "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
    "rank 1: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1\n",
};

TEST(LocalGraphs, KeepEveryGradientOfASoundStep) {
  for (const ModuleKind kind : kRunKinds) {
    const CheckOptions options = every_layer(small(kind), PlanKind::McoreLocal);
    for (const std::string& text : kWholeSteps) {
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(fmt::format("{}\n{}", name_of(kind), text));
        const Input input = typed(text);
        // Only the whole steps of what some module loses under anybody's capture are left out.
        if (!rules_broken(input, options).empty()) continue;
        const RunReport report = run_verified(input, options, {.graphs = graphs, .replays = 2});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds);
      }
    }
  }
}

// Those of a linear are tensors that two of its layers share, and what overwrites them and what a
// norm keeps is a gradient that is made there and copied to its own place.
TEST(LocalGraphs, ReplayedInAnotherOrderHurtWhomTheFindingNames) {
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::LayerNormLinear}) {
    SCOPED_TRACE(name_of(kind));
    const Input input = typed(
        "capo 1\nlayers 3\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 B1.1\n");
    const CheckOptions options = every_layer(small(kind), PlanKind::McoreLocal);
    EXPECT_EQ(rules_broken(input, options), std::vector<std::string_view>{"Y01"});
    const RunReport report = run_admitted(input, options, {});
    EXPECT_FALSE(report.bit_equal);
    EXPECT_EQ(report.victims, report.predicted);
    EXPECT_EQ(report.victims.other, (std::set<Victim>{{0, 1, 0}, {0, 1, 1}}));
    EXPECT_FALSE(report.stories.empty());
    for (const std::string& story : report.stories)
      EXPECT_EQ(story.find("something else"), std::string::npos) << story;
    EXPECT_TRUE(report.within_bounds) << "eager execution itself is right";
  }
}

}  // namespace
}  // namespace capo::run
