// Layers that are what experts do: they run while rows are with them, on rows of all ranks of their
// group, and what they made of those goes back.

#include "tests/run/exchanging.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

// Experts between two other layers.
constexpr const char* kExpertsBetween =
    "capo 1\nranks 1\nmicrobatches 2\nplacement loop\n"
    "rank 0: F1.0 dispatch-F2.0 F2.0 combine-F2.0 F1.1 dispatch-F2.1 F3.0 F2.1 combine-F2.1 F3.1 "
    "B3.0 combine-B2.0 B2.0 dispatch-B2.0 B3.1 B1.0 combine-B2.1 B2.1 dispatch-B2.1 B1.1\n";
constexpr const char* kDelayedExperts =
    "capo 1\nranks 1\nmicrobatches 2\nplacement loop\n"
    "rank 0: F1.0 dispatch-F2.0 F2.0 combine-F2.0 F1.1 dispatch-F2.1 F3.0 F2.1 combine-F2.1 F3.1 "
    "I3.0 combine-B2.0 I2.0 dispatch-B2.0 W3.0 I3.1 W2.0 I1.0 W1.0 combine-B2.1 I2.1 dispatch-B2.1 "
    "W2.1 W3.1 I1.1 W1.1\n";
// The step gives experts their rows, and the gradients that they make leave it.
constexpr const char* kExpertsAlone =
    "capo 1\nranks 1\nmicrobatches 2\n"
    "rank 0: dispatch-F1.0 F1.0 combine-F1.0 dispatch-F1.1 F1.1 combine-F1.1 "
    "combine-B1.0 B1.0 dispatch-B1.0 combine-B1.1 B1.1 dispatch-B1.1\n";

constexpr const char* kAlone =
    "dispatch-F1.0 F1.0 combine-F1.0 dispatch-F1.1 F1.1 combine-F1.1 "
    "combine-B1.0 B1.0 dispatch-B1.0 combine-B1.1 B1.1 dispatch-B1.1";

// Each rank's gradients by the names of their parameters, and the routes by which rows were
// permuted by cell and way.
struct MadeInGroups {
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::pair<std::uint32_t, Way>, std::vector<std::int64_t>> routes;

  friend bool operator==(const MadeInGroups&, const MadeInGroups&) = default;
};

MadeInGroups made_in(const std::vector<std::vector<std::int32_t>>& groups) {
  MadeInGroups made;
  CheckOptions options = every_layer(of_rows(ModuleKind::GroupedMlp, 8));
  for (const auto& members : groups) options.groups.push_back(experts_of(members));
  std::vector<std::vector<std::int64_t>> routes(8);
  RunOptions how{.replays = 1};
  how.inspect = [&](const Inspection& at) {
    for (std::uint32_t p = 0; p < at.layers.parameters().size(); ++p) {
      const ParameterForm& form = at.layers.parameters()[p];
      const GradientMemory& memory = at.outputs.gradients(p);
      made.gradients[form.name] = values_of(at.engine, form.fused ? memory.main_grad : memory.grad);
    }
    for (std::uint32_t exchange = 0; exchange < routes.size(); ++exchange) {
      routes[exchange].resize(8);
      at.engine.read(routes[exchange].data(), at.inputs.route(exchange).index, 8 * 8);
    }
  };
  const RunReport report = run_verified(typed(of_alike_ranks(2, kAlone)), options, how);
  EXPECT_TRUE(report.bit_equal);
  EXPECT_EQ(report.program.exchanges.size(), routes.size());
  for (std::size_t at = 0; at < report.program.exchanges.size(); ++at) {
    const Exchange& exchange = report.program.exchanges[at];
    made.routes[{exchange.cell, exchange.way}] = routes.at(at);
  }
  return made;
}

TEST(Experts, ComputeOnRowsOfAllRanks) {
  for (const ModuleKind kind : {ModuleKind::GroupedMlp, ModuleKind::LayerNormMlp,
                                ModuleKind::Linear, ModuleKind::MoeLayer}) {
    for (const char* order : {kExpertsBetween, kDelayedExperts, kExpertsAlone}) {
      for (const std::int32_t ranks : {1, 2, 3}) {
        for (const Granularity graphs : kGranularities) {
          SCOPED_TRACE(fmt::format("{} of {} ranks, {}", capo::name_of(kind), ranks, order));
          std::set<Message> crossed;
          const Replicas copies = copies_of(order, exchanged_over(of_rows(kind, 7), {0}), ranks);
          const RunReport report =
              run_verified(copies.input, copies.options,
                           {.graphs = graphs, .replays = 2, .transport = losing(crossed)});
          EXPECT_TRUE(report.bit_equal);
          EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
          EXPECT_EQ(report.program.crossings.size(), ranks == 1 ? 0U : 8U);
          EXPECT_EQ(crossed.size(), static_cast<std::size_t>(8 * ranks * (ranks - 1)));
        }
      }
    }
  }
}

// Rows are the same, and permuted alike, where each rank is a group of its own: what differs are
// the ranks on whose experts they are.
TEST(Experts, HaveGradientsOfOtherRanksRows) {
  const MadeInGroups together = made_in({{0, 1}});
  const MadeInGroups apart = made_in({{0}, {1}});
  ASSERT_EQ(together.routes, apart.routes);
  ASSERT_EQ(together.gradients.size(), apart.gradients.size());
  ASSERT_FALSE(together.gradients.empty());
  for (const auto& [name, gradient] : together.gradients)
    EXPECT_NE(gradient, apart.gradients.at(name)) << name;
  EXPECT_EQ(together, made_in({{0, 1}}));
}

// Experts of several microbatches get their rows at one point of their streams.
TEST(Experts, ComputeOnRowsThatCompositesBring) {
  constexpr const char* kComposites =
      "capo 1\nranks 1\nmicrobatches 2\n"
      "rank 0: (dispatch-F1.0 dispatch-F1.1) F1.0 F1.1 (combine-F1.0 combine-F1.1) "
      "(combine-B1.0 combine-B1.1) B1.0 B1.1 (dispatch-B1.0 dispatch-B1.1)\n";
  for (const std::int32_t ranks : {2, 3}) {
    for (const Granularity graphs : kGranularities) {
      const Replicas copies =
          copies_of(kComposites, exchanged_over(of_rows(ModuleKind::GroupedMlp, 8), {0}), ranks);
      const RunReport report =
          run_verified(copies.input, copies.options, {.graphs = graphs, .replays = 2});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      EXPECT_EQ(report.program.crossings.size(), 8U);
    }
  }
}

// Another rank gets what came back, not what was made of rows of others.
TEST(Experts, SendOnWhatCameBack) {
  constexpr const char* kPipeline =
      "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: dispatch-F1.0 F1.0 combine-F1.0 dispatch-F1.1 F1.1 combine-F1.1 "
      "combine-B1.0 B1.0 dispatch-B1.0 combine-B1.1 B1.1 dispatch-B1.1\n"
      "rank 1: dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0 "
      "dispatch-F1.1 F1.1 combine-F1.1 combine-B1.1 B1.1 dispatch-B1.1\n";
  for (const Granularity graphs : kGranularities) {
    CheckOptions options = exchanged_over(small(ModuleKind::LayerNormMlp), {0});
    options.groups.push_back(experts_of({1}));
    const Replicas copies = copies_of(kPipeline, options, 3);
    const RunReport report =
        run_verified(copies.input, copies.options, {.graphs = graphs, .replays = 3});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    EXPECT_EQ(report.program.crossings.size(), 16U);
  }
}

TEST(Experts, ShowEveryBlockThatDoesNotTravel) {
  EXPECT_EQ(blocks_that_show(
                copies_of(kExpertsBetween, exchanged_over(small(ModuleKind::Linear), {0}), 2)),
            16U);
}

std::string why_refused(const char* order, const CheckOptions& options,
                        const RunOptions& how = {}) {
  const Replicas copies = copies_of(order, options, 2);
  const auto report = attempt(verified(copies.input, copies.options), how);
  if (report) return "it ran";
  EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
  return report.error().message;
}

TEST(Experts, AreNotSampled) {
  EXPECT_EQ(why_refused(kExpertsAlone, exchanged_over(small(ModuleKind::Linear), {0}),
                        {.float64 = Float64::Sampled}),
            "layers that compute on rows of other ranks are compared with float64 as a whole or "
            "not at all: leave it out (--float64 none) or compare all of a step (--float64 first)");
}

TEST(Experts, NeedRowsThatAreAlike) {
  const Module module = of_rows(ModuleKind::Linear, 8);
  Module reads_wider = module;
  reads_wider.shape.hidden = 32;
  Module makes_wider = module;
  makes_wider.shape.ffn = 32;
  Module of_another_type = module;
  of_another_type.dtype = DataType::Fp32;
  for (const Module& other :
       {of_rows(ModuleKind::Linear, 6), reads_wider, makes_wider, of_another_type}) {
    CheckOptions options;
    options.modules = {.list = {module, other}, .layers = {{{0}}, {{1}}}};
    options.groups = {experts_of({0, 1})};
    constexpr const char* kActions =
        "dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0";
    const auto report = attempt(verified(typed(of_alike_ranks(2, kActions)), options), {});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().message,
              "chunk 1 of rank 0 computes on rows of rank 1, whose rows are others: the layers of "
              "experts that exchange rows need as many of one width and type on all ranks, and as "
              "many in each layer");
  }
}

TEST(Experts, AreOnAllRanksOfAGroup) {
  const auto report = attempt(
      verified(typed("capo 1\nranks 2\nmicrobatches 1\n"
                     "rank 0: dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0\n"
                     "rank 1: F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0\n"),
               exchanged_over(small(ModuleKind::Linear), {0, 1})),
      {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "chunk 1 of rank 0 computes on the rows that a dispatch brings, and rank 1 does not: "
            "experts are on all ranks of a group or on none");
}

TEST(Experts, GetGradientsWhereTheirRowsWent) {
  CheckOptions options = every_layer(small(ModuleKind::Linear));
  options.groups = {experts_of({0, 1}), experts_of({0}), experts_of({1})};
  options.groups[0].actions = {Kind::DispatchForward, Kind::CombineForward};
  options.groups[1].actions =
      options.groups[2].actions = {Kind::DispatchBackward, Kind::CombineBackward};
  constexpr const char* kActions =
      "dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0";
  const auto report = attempt(verified(typed(of_alike_ranks(2, kActions)), options), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "a chunk that runs between its dispatch and its combine is what experts do, and its "
            "backward has to run between its combine and its dispatch, over the same ranks: the "
            "gradient of a row goes where the row went");
}

TEST(Experts, AreNotRunOnWhatIsOverwritten) {
  constexpr const char* kOverwritten =
      "capo 1\nranks 1\nmicrobatches 3\nrank 0: dispatch-F1.0 F1.0 combine-F1.0 "
      "dispatch-F1.1 F1.1 combine-F1.1 combine-B1.0 I1.0 dispatch-B1.0 combine-B1.1 I1.1 "
      "dispatch-B1.1 dispatch-F1.2 F1.2 combine-F1.2 W1.0 W1.1 combine-B1.2 I1.2 dispatch-B1.2 "
      "W1.2\n";
  CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
  options.groups = {experts_of({0})};
  const auto report = attempt(admitted(typed(kOverwritten), options), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "a buffer is overwritten before it is read, and what experts make of it goes to all "
            "ranks of their group, where no victim of it can be told from others");
}

}  // namespace
}  // namespace capo::run
