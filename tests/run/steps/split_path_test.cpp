// Sizes of groups that are numbers on the CPU are constants of a graph: a replay with other sizes
// is wrong without an error, one with the sizes of the capture is right. Sizes on the device, or in
// the graph's input, follow every replay.
//
// The verifier refuses what would go wrong (C01), so that these runs come through the unchecked
// door. A grouped product in fp32 has no path but this one; eagerly it is right.

#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

constexpr std::array kGrouped{ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp,
                              ModuleKind::GroupedMlp};
constexpr std::array kOrders{"[1, 1, -1, -1]", "[1, 1, -1, -1.5, -1, -1.5]"};

// Three groups have nine rows: balanced ones have three each in every microbatch.
Module grouped(ModuleKind kind, Splits splits, DataType type = DataType::Bf16) {
  Module module = small(kind);
  module.shape.tokens = 9;
  module.splits = splits;
  module.dtype = type;
  return module;
}

template <typename Visit>
void each_run(Visit visit) {
  for (const ModuleKind kind : kGrouped) {
    for (const char* order : kOrders) {
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(fmt::format("{} {}", capo::name_of(kind), order));
        visit(kind, order, graphs);
      }
    }
  }
}

std::set<std::string> different(const RunReport& report) {
  std::set<std::string> names;
  for (const TensorReport& tensor : report.parameters) {
    if (tensor.difference) names.insert(tensor.name.substr(tensor.name.find(": ") + 2));
  }
  return names;
}

// Every row count that graphs hold as a number of their own, and not as a table on the device.
std::set<std::int64_t> baked_in(const Inspection& at) {
  std::set<std::int64_t> counts;
  for (const Stepper::Captured& captured : at.graphs) {
    for (const GraphNode& node : at.engine.inspect(captured.graph)) {
      const auto* product = std::get_if<GroupedProduct>(&node.call);
      if (product != nullptr && product->rows.sizes == nullptr) counts.insert(product->rows.count);
    }
  }
  return counts;
}

TEST(SplitPath, WithOtherSizesAReplayIsWrong) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    const RunReport report =
        run_admitted(typed(order), every_layer(grouped(kind, Splits::Host)), {.graphs = graphs});
    EXPECT_FALSE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds);  // eager execution takes the sizes as they are
    EXPECT_EQ(different(report), is_mlp(kind) ? (std::set<std::string>{"fc1 weight", "fc2 weight"})
                                              : std::set<std::string>{"weight"});
  });
}

TEST(SplitPath, WithTheSizesOfTheCaptureAReplayIsRight) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    std::vector<std::set<std::int64_t>> seen;
    const RunReport report = run_admitted(
        typed(order), every_layer(grouped(kind, Splits::Host)),
        {.graphs = graphs, .sizes = SizeKind::Balanced, .inspect = [&](const auto& at) {
           seen.push_back(baked_in(at));
         }});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds);
    EXPECT_EQ(report.replays, 3U);
    EXPECT_EQ(seen, (std::vector<std::set<std::int64_t>>{{3}, {3}}));
  });
}

TEST(SplitPath, SizesOnTheDeviceOrInTheInputFollowEveryReplay) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    for (const Splits splits : {Splits::Device, Splits::Input}) {
      for (const SizeKind sizes : {SizeKind::Random, SizeKind::Zipf, SizeKind::Balanced}) {
        SCOPED_TRACE(fmt::format("{} {}", name_of(splits), name_of(sizes)));
        std::vector<std::set<std::int64_t>> seen;
        const RunReport report =
            run_verified(typed(order), every_layer(grouped(kind, splits)),
                         {.graphs = graphs, .sizes = sizes, .inspect = [&](const auto& at) {
                            seen.push_back(baked_in(at));
                          }});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds);
        EXPECT_EQ(seen, std::vector<std::set<std::int64_t>>(2));
      }
    }
  });
}

// The door that does not open.
std::vector<std::string_view> refused_with(const Input& input, const CheckOptions& declared) {
  auto plan = verify(input, completed(input, declared));
  const auto* why = std::get_if<NotVerified>(&plan);
  if (why == nullptr) return {"it was verified"};
  std::vector<std::string_view> rules;
  for (const Diagnostic& finding : why->result.diagnostics.kept()) rules.push_back(finding.rule);
  return rules;
}

TEST(SplitPath, TheVerifierRefusesWhatWouldGoWrong) {
  using Rules = std::vector<std::string_view>;
  for (const ModuleKind kind : kGrouped) {
    for (const PlanKind plan : {PlanKind::Safe, PlanKind::Te}) {
      SCOPED_TRACE(capo::name_of(kind));
      const Input input = typed("[1, -1, -1.5]");
      const auto with = [&](Splits splits, DataType type) {
        return refused_with(input, every_layer(grouped(kind, splits, type), plan));
      };
      EXPECT_EQ(with(Splits::Host, DataType::Bf16), Rules{"C01"});
      EXPECT_EQ(with(Splits::Host, DataType::Fp32), Rules{"C01"});
      EXPECT_EQ(with(Splits::Device, DataType::Fp32), Rules{"C01"});
      EXPECT_EQ(with(Splits::Device, DataType::Bf16), Rules{"it was verified"});
    }
  }
}

TEST(SplitPath, InFp32AGroupedProductRunsEagerly) {
  for (const ModuleKind kind : kGrouped) {
    for (const char* order : kOrders) {
      SCOPED_TRACE(fmt::format("{} {}", capo::name_of(kind), order));
      const RunReport report = run_admitted(
          typed(order), every_layer(grouped(kind, Splits::Device, DataType::Fp32)), {.replays = 0});
      EXPECT_TRUE(report.within_bounds);
      EXPECT_GT(report.worst_relative_error, 0);
      EXPECT_LT(report.worst_relative_error, 1e-5);
      EXPECT_EQ(report.replays, 0U);
      EXPECT_EQ(report.graphs, 0U);
    }
  }
}

// Its graph bakes the sizes in like any other, wherever they lie.
TEST(SplitPath, InFp32AReplayWithOtherSizesIsWrong) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    const CheckOptions options = every_layer(grouped(kind, Splits::Device, DataType::Fp32));
    EXPECT_FALSE(run_admitted(typed(order), options, {.graphs = graphs}).bit_equal);
    EXPECT_TRUE(run_admitted(typed(order), options, {.graphs = graphs, .sizes = SizeKind::Balanced})
                    .bit_equal);
  });
}

// An MLP keeps copies, a linear if the plan says so.
TEST(SplitPath, AWeightGradientOfCopiesFindsItsSizesBesideThem) {
  for (const ModuleKind kind : {ModuleKind::GroupedMlp, ModuleKind::GroupedLinear}) {
    SCOPED_TRACE(capo::name_of(kind));
    Module module = small(kind);
    module.splits = Splits::Input;
    CheckOptions options = every_layer(module);
    if (!is_mlp(kind)) options.plan.aliases = Aliases{};
    const RunReport report = run_verified(typed("[1, -1, -1.5]"), options, {});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds);
  }
}

}  // namespace
}  // namespace capo::run
