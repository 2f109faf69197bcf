// Races, forced: where nothing orders a write with a read of what lay there, the run takes the one
// order of all that goes wrong, and it does so on every engine. Two kinds of step have them:
//
//   [1, -1, -1.5, 1, -1, -1.5] --weight-stream   W1.0 on a stream of its own reads the input that
//                                                F1.1 may already overwrite
//   rank 0: F1.0 send-F1.0 F1.1 ...              the send reads an output that a later piece of
//                                                work of its rank takes over, and nobody waits
//
// The victims seen are compared with those predicted, and some must be seen: every such run has
// a wrong gradient. As one graph such a step is a chain, so that nothing is left to chance.
//
// Sends hand on what they should not, so that two pieces of work may compute the same wrong
// numbers. If the one takes the other's memory over nothing changes there, and that victim stays
// unseen: sends have no other victims than predicted, and in most orders no fewer.

#include "schedules/catalogue.h"
#include "tests/run/read_back.h"
#include "tests/run/running.h"
#include "tests/support/data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using testing_support::read_data;

std::size_t races_of(const UncheckedPlan& plan) {
  const auto& hazards = plan.step().view().hazards();
  return static_cast<std::size_t>(
      std::count_if(hazards.begin(), hazards.end(),
                    [](const JudgedHazard& judged) { return judged.hazard.race; }));
}

struct Tally {
  std::size_t orders = 0;
  std::size_t races = 0;
  std::size_t complete = 0;  // orders with all victims that were predicted
  std::size_t wrong = 0;     // weight gradients
};

void expect_within(const std::set<Victim>& seen, const std::set<Victim>& predicted) {
  EXPECT_TRUE(std::includes(predicted.begin(), predicted.end(), seen.begin(), seen.end()));
}

void expect_shown(const UncheckedPlan& plan, Tally& tally) {
  bool complete = true;
  for (const Granularity graphs : kGranularities) {
    RunOptions options{.graphs = graphs, .replays = 1};
    options.inspect = [](const Inspection& at) {
      for (const auto& each : at.graphs) expect_chain(at.engine.inspect(each.graph));
    };
    const RunReport report = report_of(plan, options);
    expect_within(report.victims.static_input, report.predicted.static_input);
    expect_within(report.victims.grad_output, report.predicted.grad_output);
    expect_within(report.victims.grad_input, report.predicted.grad_input);
    expect_within(report.victims.other, report.predicted.other);
    complete = complete && report.victims == report.predicted;
    EXPECT_FALSE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds);
    tally.wrong += report.wrong_gradients.size();
  }
  ++tally.orders;
  tally.complete += complete ? 1 : 0;
  tally.races += races_of(plan);
}

void tell(const char* what, const Tally& tally) {
  std::printf(
      "%s: %zu orders with %zu races, all victims seen in %zu; %zu wrong weight gradients\n", what,
      tally.orders, tally.races, tally.complete, tally.wrong);
}

TEST(Races, OfWeightGradientsOnAStreamOfTheirOwnAreShown) {
  Tally tally;
  const auto data = read_data("te_hazards.json");
  for (const auto& row : data.at("rows")) {
    SCOPED_TRACE(row.dump());
    CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
    options.environment.weight_stream = true;
    const Input input = typed(row.at("order").dump());
    if (rules_broken(input, options).empty()) continue;
    const UncheckedPlan plan = admitted(input, options);
    if (races_of(plan) == 0) continue;
    expect_shown(plan, tally);
    if (HasFailure()) return;
  }
  tell("W on a stream of its own", tally);
  EXPECT_EQ(tally.orders, 199U);
  EXPECT_EQ(tally.complete, tally.orders);
}

// W2 reads what B1 overwrites, and may itself overwrite what B1 makes, between two of its kernels.
// No run shows both: the one that it can is the one that it takes.
TEST(Races, ThatCanShowAreForcedBeforeThoseThatCannot) {
  Module module = small(ModuleKind::GroupedMlp);
  module.dtype = DataType::Fp16;
  module.flags.fuse_wgrad_accumulation = true;
  CheckOptions options = every_layer(module, PlanKind::Te);
  options.environment.weight_stream = true;
  const auto plan = admitted(typed("capo 1\nranks 1\nmicrobatches 1\nplacement chain\n"
                                   "rank 0: F1.0 F2.0 B2.0 W2.0 B1.0 W1.0\n"),
                             options);
  EXPECT_GT(races_of(plan), 1u);
  for (const Granularity graphs : kGranularities) {
    const RunReport report = report_of(plan, {.graphs = graphs, .replays = 1});
    EXPECT_FALSE(report.bit_equal);
    EXPECT_EQ(report.victims.other, (std::set<Victim>{{0, 2, 0}}));
    expect_within(report.victims.other, report.predicted.other);
  }
}

// W1.0 makes its scratch where B1.1 leaves what W1.1 reads. Launched the one before the other they
// hurt W1.1, and W1.0 would be hurt between two of its kernels.
TEST(Races, OfTwoWritersNameBothVictims) {
  Module module = small(ModuleKind::Linear);
  module.flags.gathered_grad_output = true;
  CheckOptions options = every_layer(module, PlanKind::Te);
  options.environment.weight_stream = true;
  const auto plan = admitted(typed("[1, -1, -1.5, 1, -1, -1.5]"), options);
  for (const Granularity graphs : kGranularities) {
    const RunReport report = report_of(plan, {.graphs = graphs, .replays = 1});
    EXPECT_EQ(report.victims.other, (std::set<Victim>{{0, 1, 0}, {0, 1, 1}}));
    EXPECT_EQ(report.victims, report.predicted);
    EXPECT_FALSE(report.bit_equal);
  }
}

// Each victim reads NaN, as poison or computed from it. These are different bits on a device, and
// so they are here: two gradients in one place, of groups of other sizes, would be the same
// otherwise.
TEST(Races, ANanThatIsComputedIsNotThePoisonThatLiesThere) {
  Module module = small(ModuleKind::GroupedLinear);
  module.dtype = DataType::Bf16;
  module.shape = {.tokens = 8, .hidden = 24, .ffn = 24, .groups = 1};
  const auto plan = admitted(
      typed("capo 1\nranks 2\nplacement loop\n"
            "rank 0: F1.0 F2.0 B2.0 F1.1 W2.0 F2.1 F1.2 B2.1 W2.1 F2.2 B2.2 B1.0 W1.0 B1.1 W2.2 "
            "B1.2 W1.1 W1.2\n"
            "rank 1: F1.0 B1.0 F1.1 F1.2 B1.1 B1.2\n"),
      every_layer(module, PlanKind::Te));
  const RunReport report = report_of(plan, {.replays = 1});
  EXPECT_EQ(report.victims, report.predicted);
  EXPECT_TRUE(report.victims.grad_output.contains({0, 1, 1}));
}

TEST(Races, OfSendsThatNobodyWaitsForAreShown) {
  Tally tally;
  for (const schedules::Entry& entry : schedules::entries()) {
    for (const std::int32_t ranks : {2, 4}) {
      for (const std::int32_t microbatches : {4, 6}) {
        schedules::Request request{
            .name = std::string(entry.name), .ranks = ranks, .microbatches = microbatches};
        auto schedule = schedules::schedule_named(request);
        if (!schedule) continue;
        SCOPED_TRACE(fmt::format("{} p={} m={}", entry.name, ranks, microbatches));
        const Input input{.form = Form::OrderFile, .schedule = *std::move(schedule)};
        const CheckOptions options = every_layer(small(ModuleKind::Linear), PlanKind::Te);
        if (rules_broken(input, options).empty()) continue;
        const UncheckedPlan plan = admitted(input, options);
        if (races_of(plan) == 0) continue;
        expect_shown(plan, tally);
        if (HasFailure()) return;
      }
    }
  }
  tell("sends", tally);
  EXPECT_EQ(tally.orders, 38U);
  EXPECT_EQ(tally.complete, 26U);
}

}  // namespace
}  // namespace capo::run
