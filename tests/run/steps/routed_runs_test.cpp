// A router and its experts as a module, run: shapes on schedules that split backward and on those
// that do not, under both plans; sizes that follow from the data of each replay; what it launches;
// and wrong kernels, which float64 sees.

#include "tests/run/labelled_engine.h"
#include "tests/run/launched_words.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

struct Experts {
  std::int64_t tokens = 0;
  std::int64_t groups = 0;
  std::int64_t top_k = 0;
};

Module routed(const Experts& of) {
  Module module = small(ModuleKind::MoeLayer);
  module.shape = {
      .tokens = of.tokens, .hidden = 8, .ffn = 6, .groups = of.groups, .top_k = of.top_k};
  return module;
}

// One group and many, of which some stay empty; one choice, some, and all.
const std::vector<Experts> kExperts{{.tokens = 5, .groups = 1, .top_k = 1},
                                    {.tokens = 12, .groups = 4, .top_k = 2},
                                    {.tokens = 12, .groups = 3, .top_k = 3},
                                    {.tokens = 7, .groups = 40, .top_k = 1},
                                    {.tokens = 16, .groups = 8, .top_k = 3}};

std::string expert_words(const Module& module) {
  const ModuleShape& shape = module.shape;
  return fmt::format("{} tokens, {} groups, top_k {}, {}", *shape.tokens, *shape.groups,
                     *shape.top_k, name_of(*module.dtype));
}

void expect_routed_right(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  EXPECT_EQ(report.bytes.planned, report.bytes.allocated);
}

Input on_two_ranks(const char* name, std::int32_t chunks) {
  return {.form = Form::OrderFile,
          .schedule =
              published({.name = name, .ranks = 2, .microbatches = 4, .chunks = chunks}).value()};
}

TEST(RoutedRuns, EveryShapeIsRightOnSchedulesOfTwoRanks) {
  for (const auto& [name, chunks] : {std::pair("1f1b", 1), std::pair("zb-h1", 1),
                                     std::pair("1f1b-interleaved", 2), std::pair("zbv", 2)}) {
    for (const Experts& experts : kExperts) {
      for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
        Module module = routed(experts);
        module.dtype = type;
        module.flags.fuse_wgrad_accumulation = type != DataType::Fp16;
        SCOPED_TRACE(fmt::format("{}, {}", name, expert_words(module)));
        const VerifiedPlan plan = verified(on_two_ranks(name, chunks), every_layer(module));
        for (const Granularity graphs : kGranularities) {
          expect_routed_right(
              report_of(plan, {.graphs = graphs, .replays = 2, .float64 = Float64::EveryReplay}));
        }
      }
    }
  }
}

TEST(RoutedRuns, EveryShapeIsRightUnderTransformerEnginesPlan) {
  for (const char* order : {"[1, 1, -1, -1]", "[1, -1, -1.5, 1, -1, -1.5]",
                            "[1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]"}) {
    for (const Experts& experts : kExperts) {
      const Module module = routed(experts);
      SCOPED_TRACE(fmt::format("{}, {}", order, expert_words(module)));
      const VerifiedPlan plan = verified(typed(order), every_layer(module, PlanKind::Te));
      for (const Granularity graphs : kGranularities) {
        expect_routed_right(report_of(plan, {.graphs = graphs, .replays = 2}));
      }
    }
  }
}

// Ties are frequent among bf16 logits of many groups, and so are roundings that float64 would do
// the other way.
TEST(RoutedRuns, NearTiesAreTakenAsTheRunTookThem) {
  Module module = routed({.tokens = 64, .groups = 48, .top_k = 4});
  module.shape.hidden = 64;
  for (const DataType type : {DataType::Bf16, DataType::Fp32}) {
    module.dtype = type;
    const VerifiedPlan plan = verified(typed("[1, -1, -1.5]"), every_layer(module));
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const RunReport report = report_of(plan, {.replays = 0, .seed = seed});
      EXPECT_TRUE(report.within_bounds) << seed << " " << report.beyond[0].name;
    }
  }
}

// --- what it decides -----------------------------------------------------------------------------

// Reads the sizes that each replay of a forward's graph has left.
class SizesEngine final : public LabelledEngine {
 public:
  explicit SizesEngine(std::int64_t groups) : LabelledEngine(test_engine()), groups_(groups) {}

  void replay(GraphId graph, StreamId stream) override {
    LabelledEngine::replay(graph, stream);
    for (const CapturedLaunch& launch : launches(graph)) {
      const auto* sort = std::get_if<SortRoutes>(&launch.call);
      if (sort == nullptr) continue;
      auto& sizes = seen.emplace_back(static_cast<std::size_t>(groups_));
      synchronise();
      read(sizes.data(), sort->sizes, groups_ * 8);
    }
  }

  std::vector<std::vector<std::int64_t>> seen;

 private:
  std::int64_t groups_;
};

// The step is given no sizes, whatever `--sizes` says, and no capture holds any.
TEST(RoutedRuns, SizesFollowFromTheDataOfEachReplay) {
  const VerifiedPlan plan = verified(typed("[1, -1, -1.5]"), every_layer(routed(kExperts[1])));
  for (const Granularity graphs : kGranularities) {
    std::vector<std::vector<std::int64_t>> balanced;
    for (const SizeKind kind : {SizeKind::Balanced, SizeKind::Random}) {
      SizesEngine engine(4);
      expect_routed_right(report_on(
          engine, plan, {.graphs = graphs, .replays = 6, .sizes = kind, .poison = Poison::Off}));
      ASSERT_EQ(engine.seen.size(), 6U);
      for (const auto& sizes : engine.seen) {
        EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 12 * 2);
      }
      EXPECT_GE(std::set(engine.seen.begin(), engine.seen.end()).size(), 4U);
      if (balanced.empty()) balanced = engine.seen;
      EXPECT_EQ(engine.seen, balanced);
    }
  }
}

// --- what it launches ----------------------------------------------------------------------------

std::string routed_word(const Call& call) {
  if (const auto* product = std::get_if<GroupedProduct>(&call)) {
    return fmt::format("{}({}x{}, {} rows)", kind_word(*product), product->out, product->in,
                       product->rows.count);
  }
  if (std::holds_alternative<Route>(call)) return "route";
  if (std::holds_alternative<SortRoutes>(call)) return "sort";
  if (std::holds_alternative<RouteGradient>(call)) return "droute";
  if (std::holds_alternative<Gather>(call)) return "dispatch";
  if (std::holds_alternative<Combine>(call)) return "combine";
  return "";
}

std::vector<std::string> routed_launches(const char* order, const Module& module) {
  return launched_words(verified(typed(order), every_layer(module)), routed_word,
                        [](const RunReport& report) { expect_routed_right(report); });
}

// 12 tokens choose 2 of 4 groups: 24 rows of experts, of 8 columns, twice 6 between.
TEST(RoutedRuns, LaunchesTheRouterAroundItsExperts) {
  using Words = std::vector<std::string>;
  const Module module = routed(kExperts[1]);
  const std::string forward =
      "y(4x8, 12 rows) route sort dispatch y(12x8, 24 rows) y(8x6, 24 rows) combine";
  const std::string weights = "dw(8x6, 24 rows) dw(12x8, 24 rows) dw(4x8, 12 rows)";
  const std::string input = "dx(12x8, 24 rows) dx(4x8, 12 rows) combine";
  EXPECT_EQ(routed_launches("[1, -1]", module),
            (Words{forward, "dispatch dx(8x6, 24 rows) droute " + weights + " " + input}));
  EXPECT_EQ(routed_launches("[1, -1, -1.5]", module),
            (Words{forward, "dispatch dx(8x6, 24 rows) droute " + input, "dispatch " + weights}));
}

// --- wrong kernels -------------------------------------------------------------------------------

template <typename Of, typename Change>
FaultyEngine::Fault calls(Change change) {
  return [change](Call& call) {
    if (auto* of = std::get_if<Of>(&call)) change(*of);
  };
}

void expect_beyond(const FaultyEngine::Fault& fault, std::string_view part) {
  FaultyEngine engine(fault);
  const VerifiedPlan plan =
      verified(typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n"),
               every_layer(routed(kExperts[1])));
  const RunReport report = report_on(engine, plan, {.replays = 1});
  EXPECT_TRUE(report.bit_equal) << "eager execution launches the same";
  EXPECT_FALSE(report.within_bounds);
  EXPECT_TRUE(
      std::any_of(report.beyond.begin(), report.beyond.end(),
                  [&](const BeyondBound& one) { return one.name.find(part) != std::string::npos; }))
      << part << ", but " << (report.beyond.empty() ? "nothing" : report.beyond[0].name);
}

// The logits of 12 tokens are followed by memory of the layer's.
TEST(RoutedRuns, AChoiceByTheLogitsOfAnotherTokenIsSeen) {
  expect_beyond(calls<Route>([](Route& call) {
                  call.logits = static_cast<const std::byte*>(call.logits) + 4 * 2;
                }),
                "choices that layer 0 of chunk 1 of rank 0 made, microbatch 0");
}

TEST(RoutedRuns, ACombinationThatForgetsTheResidualIsSeen) {
  expect_beyond(calls<Combine>([](Combine& call) { call.write = Write::Overwrite; }),
                "input that layer 0 of chunk 2 of rank 0 read");
}

TEST(RoutedRuns, ProbabilitiesOfOtherChoicesAreSeen) {
  expect_beyond(calls<SortRoutes>([](SortRoutes& call) { ++call.probabilities; }),
                "layer 0 of chunk 1 of rank 0: fc2 weight");
}

TEST(RoutedRuns, AGradientOfOtherChoicesIsSeen) {
  expect_beyond(calls<RouteGradient>([](RouteGradient& call) { call.shape.top_k = 1; }),
                "layer 0 of chunk 1 of rank 0: router weight");
}

// --- what is refused -----------------------------------------------------------------------------

TEST(RoutedRuns, ASampleOfFloat64IsRefused) {
  const VerifiedPlan plan = verified(typed("[1, -1]"), every_layer(routed(kExperts[1])));
  const auto report = attempt(plan, {.float64 = Float64::Sampled, .float64_samples = 3});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "a layer with a router is compared with float64 as a whole or not at all: leave it out "
            "(--float64 none) or compare all of a step (--float64 first)");
}

}  // namespace
}  // namespace capo::run
