// What tests of whole runs do not ask of a device: modules large enough for the kernels of tensor
// cores, and the victims of the host engine beside its own, in one program.

#include "run/host/host_engine.h"
#include "tests/run/running.h"
#include "tests/support/data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

namespace capo::run {
namespace {

TEST(Runs, OfLargerModulesAreEqualToEagerInBothGranularities) {
  for (const ModuleKind kind : kRunKinds) {
    for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
      Module module = small(kind);
      module.dtype = type;
      module.shape.tokens = 48;
      module.shape.hidden = 64;
      if (is_attention(kind) || has_two_halves(kind)) {
        module.shape.head_dim = 32;
        module.shape.sequence = 24;
      }
      if (!is_attention(kind)) module.shape.ffn = 64;
      module.flags.bias = type == DataType::Fp16 && !has_router(kind);
      const VerifiedPlan plan = verified(
          typed("[1, 2, -2, -2.5, -1, 1, 2, -1.5, -2, -2.5, -1, -1.5]"), every_layer(module));
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(fmt::format("{} {}", name_of(kind), name_of(type)));
        const RunReport report = report_of(plan, {.graphs = graphs, .replays = 3});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
        EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
        EXPECT_GT(report.nodes, 0u) << "graphs could not be read back";
      }
    }
  }
}

// Products of so many columns go on with their results in the same kernel, forward and backward.
TEST(Runs, OfWideModulesAreEqualToEager) {
  for (const ModuleKind kind :
       {ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp, ModuleKind::MoeLayer}) {
    SCOPED_TRACE(name_of(kind));
    Module module = small(kind);
    module.shape.tokens = 128;
    module.shape.hidden = 8;
    module.shape.ffn = kind == ModuleKind::LayerNormMlp ? 67584 : 20480;
    if (kind != ModuleKind::LayerNormMlp) module.shape.groups = 6;
    const VerifiedPlan plan = verified(typed("[1, -1, 1, -1]"), every_layer(module));
    const RunReport report = report_of(plan, {.replays = 2});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
  }
}

TEST(Runs, OfHazardsHaveTheVictimsThatTheHostEngineFinds) {
  const auto rows = testing_support::read_data("te_hazards.json")["rows"];
  Sample sample;
  std::size_t runs = 0;
  for (const auto& row : rows) {
    if (!sample.takes_next()) continue;
    const std::string order = row["order"].dump();
    SCOPED_TRACE(order);
    const UncheckedPlan plan =
        admitted(typed(order), every_layer(small(ModuleKind::Linear), PlanKind::Te));
    for (const Granularity graphs : kGranularities) {
      const RunReport device = report_of(plan, {.graphs = graphs, .replays = 1});
      host::HostEngine host_engine;
      const RunReport host = report_on(host_engine, plan, {.graphs = graphs, .replays = 1});
      EXPECT_EQ(device.victims, host.victims);
      EXPECT_EQ(device.victims, device.predicted);
      EXPECT_EQ(device.wrong_gradients, host.wrong_gradients);
      ++runs;
    }
  }
  std::printf("%zu runs of hazards on the device\n", runs);
  EXPECT_EQ(runs, 2 * sampled(200));
}

// The host engine has none of the driver's calls, so that its times say nothing.
TEST(Runs, TellHowLongTheDriverTookForGraphs) {
  const VerifiedPlan plan =
      verified(typed("[1, -1, -1.5]"), every_layer(small(ModuleKind::Linear)));
  for (const Granularity graphs : kGranularities) {
    const RunTimes times = report_of(plan, {.graphs = graphs}).times;
    EXPECT_GT(times.instantiate, 0);
    EXPECT_GT(times.upload, 0);
    EXPECT_GE(times.capture, times.instantiate + times.upload);
    EXPECT_GT(times.launch, 0);
    EXPECT_GE(times.replay, 0);
  }
}

}  // namespace
}  // namespace capo::run
