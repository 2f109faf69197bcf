// Whole steps on the device: the same plans, modules and comparison as on the host engine, and the
// same victims.

#include <capo/core/generate/published/catalogue.h>
#include <capo/gpu/engine/cuda_engine.h>
#include <capo/tests/run/running.h>
#include <capo/tests/support/data.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {
namespace {

std::unique_ptr<gpu::CudaEngine> device_or_null(std::string& why) {
  auto made = gpu::CudaEngine::make();
  if (!made) {
    why = "no CUDA device here: " + made.error().message;
    return nullptr;
  }
  return *std::move(made);
}

template <typename AnyPlan>
RunReport on_device(const AnyPlan& plan, const RunOptions& options) {
  std::string why;
  const auto engine = device_or_null(why);
  const auto report = [&] {
    if constexpr (std::is_same_v<AnyPlan, VerifiedPlan>) {
      return run(*engine, plan, options);
    } else {
      return run_unchecked(*engine, plan, options);
    }
  }();
  if (!report) throw std::runtime_error(report.error().message);
  return *report;
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (device_or_null(why) == nullptr) GTEST_SKIP() << why;
  }
};

TEST_F(OnDevice, EveryModuleIsEqualToEagerInBothGranularities) {
  for (const ModuleKind kind : kRunKinds) {
    for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
      Module module = small(kind);
      module.dtype = type;
      module.shape.tokens = 48;
      module.shape.hidden = 64;
      module.shape.ffn = 64;
      module.flags.bias = type == DataType::Fp16;
      const VerifiedPlan plan = verified(
          typed("[1, 2, -2, -2.5, -1, 1, 2, -1.5, -2, -2.5, -1, -1.5]"), every_layer(module));
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(fmt::format("{} {}", name_of(kind), name_of(type)));
        const RunReport report = on_device(plan, {.graphs = graphs, .replays = 3});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
        EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
        EXPECT_GT(report.nodes, 0u) << "graphs could not be read back";
      }
    }
  }
}

TEST_F(OnDevice, PublishedSchedulesOfTwoRanksAreEqualToEager) {
  std::size_t schedules = 0;
  for (const published::Entry& entry : published::entries()) {
    published::Request request{
        .name = std::string(entry.name), .ranks = 2, .microbatches = 4, .memory_limit = 4};
    auto schedule = published::schedule_named(request);
    if (!schedule) {
      request.memory_limit.reset();
      schedule = published::schedule_named(request);
    }
    if (!schedule) {
      request.chunks = 2;
      schedule = published::schedule_named(request);
    }
    if (!schedule) continue;
    ++schedules;
    SCOPED_TRACE(std::string(entry.name));
    const VerifiedPlan plan = verified({.form = Form::OrderFile, .schedule = *schedule},
                                       every_layer(small(ModuleKind::LayerNormLinear)));
    for (const Granularity graphs : kGranularities) {
      const RunReport report = on_device(plan, {.graphs = graphs, .replays = 3});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    }
  }
  EXPECT_GT(schedules, 15u);
}

TEST_F(OnDevice, HazardsHaveTheVictimsThatTheHostEngineFinds) {
  const auto rows = testing_support::read_data("te_hazards.json")["rows"];
  std::size_t runs = 0;
  for (std::size_t at = 0; at < rows.size(); at += 4) {
    const std::string order = rows[at]["order"].dump();
    SCOPED_TRACE(order);
    const UncheckedPlan plan =
        admitted(typed(order), every_layer(small(ModuleKind::Linear), PlanKind::Te));
    for (const Granularity graphs : kGranularities) {
      const RunReport device = on_device(plan, {.graphs = graphs, .replays = 1});
      const RunReport host = report_of(plan, {.graphs = graphs, .replays = 1});
      EXPECT_EQ(device.victims, host.victims);
      EXPECT_EQ(device.victims, device.predicted);
      EXPECT_EQ(device.wrong_gradients, host.wrong_gradients);
      ++runs;
    }
  }
  std::printf("%zu runs of hazards on the device\n", runs);
  EXPECT_GE(runs, 100u);
}

TEST_F(OnDevice, TheSplitPathBakesItsSizesIn) {
  Module module = small(ModuleKind::GroupedLinear);
  module.splits = Splits::Host;
  const UncheckedPlan plan = admitted(typed("[1, -1, -1.5]"), every_layer(module));
  EXPECT_FALSE(on_device(plan, {.replays = 3}).bit_equal);
  EXPECT_TRUE(on_device(plan, {.replays = 3, .sizes = SizeKind::Balanced}).bit_equal);
}

}  // namespace
}  // namespace capo::run
