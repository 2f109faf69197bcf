// Steps that are refused before anything runs, for what their plan does to choices of a router and
// to sizes of groups, and for the work that float64 would be.
//
// A choice is an address, and a size leads to one. The first order is replayed otherwise than it
// was captured, so that what is captured into the memory of what was over lies over what is not.

#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

constexpr const char* kSpoilt =
    "capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 B1.1\n";
constexpr const char* kSound = "capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\n";

std::vector<Module> with_router() {
  return {small(ModuleKind::MoeLayer), small_with_experts()};
}

bool spoils_what_is_kept(const UncheckedPlan& plan) {
  for (const FoundHazard& hazard : plan.step().result().plan->hazards) {
    if (hazard.victim.kind == BufferKind::Activations) return true;
  }
  return false;
}

TEST(Refusals, ChoicesThatMayBeOverwrittenAreNeverFollowed) {
  for (const Module& module : with_router()) {
    const UncheckedPlan plan = admitted(typed(kSpoilt), every_layer(module, PlanKind::Te));
    ASSERT_TRUE(spoils_what_is_kept(plan));
    for (const std::uint32_t replays : {0U, 1U}) {
      const auto report = attempt(plan, {.replays = replays});
      ASSERT_FALSE(report) << module.name;
      EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
      EXPECT_EQ(report.error().message,
                "the choices of a router may be overwritten before they are read, and they are "
                "addresses of rows: what layer 0 of chunk 1 of rank 0 keeps of microbatch 0 has to "
                "stay");
    }
  }
}

// An input may have sizes of groups behind its rows.
Module with_sizes_in_input() {
  Module module = small(ModuleKind::GroupedMlp);
  module.splits = Splits::Input;
  return module;
}

void expect_sizes_refused(const UncheckedPlan& plan) {
  for (const std::uint32_t replays : {0U, 1U}) {
    const auto report = attempt(plan, {.replays = replays});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
    EXPECT_EQ(report.error().message,
              "the sizes of groups may be overwritten before they are read, and they say where "
              "rows are: the input of layer 0 of chunk 1 of rank 0, microbatch 0, has to stay");
  }
}

TEST(Refusals, SizesThatMayBeOverwrittenAreNeverFollowed) {
  const CheckOptions options = every_layer(with_sizes_in_input(), PlanKind::McoreLocal);
  expect_sizes_refused(admitted(typed(kSpoilt), options));
  EXPECT_TRUE(report_of(admitted(typed(kSound), options), {.replays = 1}).bit_equal);
}

// A module without sizes whose inputs TransformerEngine takes for alike.
TEST(Refusals, SizesThatAnInputWithoutSizesMayOverwriteAreNeverFollowed) {
  CheckOptions options = every_layer(with_sizes_in_input(), PlanKind::Te);
  Module without = small(ModuleKind::LayerNormLinear);
  options.modules.list.front().bytes.input = without.bytes.input = 8 * 16 * 2 + 3 * 8;
  options.modules.list.push_back(without);
  options.modules.layers = {{{0}, {1}}};
  expect_sizes_refused(admitted(typed("capo 1\nrank 0: F1.0 B1.0 F2.0 B2.0\n"
                                      "rank 0 replay: F1.0 F2.0 B1.0 B2.0\n"),
                                options));
}

// TransformerEngine's plan lets inputs that are alike lie over each other, so there are always
// sizes. Those of the second order are read when their memory is nobody's any more.
TEST(Refusals, SizesThatOtherSizesOverwriteAreFollowed) {
  for (const char* const order :
       {kSpoilt, "capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.1 B1.0\n"}) {
    const RunReport report =
        run_admitted(typed(order), every_layer(with_sizes_in_input(), PlanKind::Te), {});
    EXPECT_FALSE(report.bit_equal);
    EXPECT_EQ(report.victims.static_input, (std::set<Victim>{{0, 1, 0}}));
    EXPECT_EQ(report.victims, report.predicted);
  }
}

// Whatever else is overwritten is run and shown, as is the same plan without a router.
TEST(Refusals, OfChoicesConcernNothingElse) {
  const UncheckedPlan without =
      admitted(typed(kSpoilt), every_layer(small(ModuleKind::LayerNormMlp), PlanKind::Te));
  ASSERT_TRUE(spoils_what_is_kept(without));
  EXPECT_FALSE(report_of(without, {.replays = 1}).bit_equal);

  constexpr const char* kLate = "[1, 1, -1, 1, -1, -1.5, -1.5, -1, -1.5]";
  // The second forward takes an input's memory over, and nothing that a W has yet to read.
  constexpr const char* kInput =
      "capo 1\nrank 0: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1\n"
      "rank 0 replay: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n";
  for (const Module& module : with_router()) {
    const UncheckedPlan sound = admitted(typed(kSound), every_layer(module, PlanKind::Te));
    EXPECT_FALSE(spoils_what_is_kept(sound));
    EXPECT_TRUE(report_of(sound, {.replays = 1}).bit_equal);
    const UncheckedPlan other = admitted(typed(kLate), every_layer(module, PlanKind::Te));
    EXPECT_FALSE(spoils_what_is_kept(other));
    EXPECT_FALSE(report_of(other, {.replays = 1}).bit_equal);
    const UncheckedPlan input = admitted(typed(kInput), every_layer(module, PlanKind::Te));
    EXPECT_FALSE(spoils_what_is_kept(input));
    const RunReport report = report_of(input, {.replays = 1});
    EXPECT_FALSE(report.victims.static_input.empty());
    EXPECT_EQ(report.victims, report.predicted);
  }
}

TEST(Refusals, ASampleIsTakenOfNoTransformerLayer) {
  const RunOptions options{.float64 = Float64::Sampled, .float64_samples = 3};
  const auto dense =
      attempt(verified(typed(kSound), every_layer(small(ModuleKind::TransformerLayer))), options);
  ASSERT_FALSE(dense);
  EXPECT_EQ(dense.error().message,
            "a transformer-layer is compared with float64 as a whole or not at all: leave it out "
            "(--float64 none) or compare all of a step (--float64 first)");
  const auto experts = attempt(verified(typed(kSound), every_layer(small_with_experts())), options);
  ASSERT_FALSE(experts);
  EXPECT_NE(experts.error().message.find("a layer with a router"), std::string::npos);
}

// Two microbatches of 8 rows, whose products are 32 x 16, 16 x 16, 32 x 16 and 16 x 16 numbers,
// forward and backward two ways; experts have two rows for each row.
TEST(Refusals, CountTheWorkOfBothHalves) {
  const auto refused_at = [](const Module& module, double limit) {
    const auto report = attempt(verified(typed(kSound), every_layer(module)),
                                {.replays = 0, .float64_limit = limit});
    return !report;
  };
  const double attention = 2 * 3 * 8 * (32 * 16 + 16 * 16);
  const double mlp = 2 * 3 * 8 * (32 * 16 + 16 * 16);
  const Module dense = small(ModuleKind::TransformerLayer);
  EXPECT_FALSE(refused_at(dense, attention + mlp));
  EXPECT_TRUE(refused_at(dense, attention + mlp - 1));
  EXPECT_FALSE(refused_at(small_with_experts(), attention + 2 * mlp));
  EXPECT_TRUE(refused_at(small_with_experts(), attention + 2 * mlp - 1));
}

}  // namespace
}  // namespace capo::run
