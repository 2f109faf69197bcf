#include "core/rules/verify.h"

#include "core/input/load.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

Input typed(std::string text) {
  auto input = load(Source{.name = "<test>", .text = std::move(text)}, LoadOptions{});
  EXPECT_TRUE(input);
  return *std::move(input);
}

CheckOptions declared(std::optional<PlanKind> kind, bool sized = true) {
  CheckOptions options;
  Module module{.name = "linear", .kind = ModuleKind::Linear};
  module.flags.delay_wgrad = true;
  module.flags.fuse_wgrad_accumulation = true;
  if (sized) {
    module.dtype = DataType::Bf16;
    module.shape = {.tokens = 4, .hidden = 8, .ffn = 8};
  }
  options.modules = {.list = {module}, .layers = {{{0}}}};
  options.plan.kind = kind;
  return options;
}

constexpr const char* kSound = "[1, -1, -1.5]";
constexpr const char* kHazard = "[1, -1, 1, -1.5, -1, -1.5]";

TEST(Verify, AnAcceptedStepHasItsPlanAndItsCourses) {
  const auto plan = verify(typed(kSound), declared(PlanKind::Safe));
  const auto* verified = std::get_if<VerifiedPlan>(&plan);
  ASSERT_NE(verified, nullptr);
  const PlannedStep& step = verified->step();
  EXPECT_EQ(step.result().verdict, Verdict::Accepted);
  EXPECT_EQ(step.view().plan().kind, PlanKind::Safe);
  EXPECT_EQ(step.captured().work.front().size(), 3u);
  EXPECT_EQ(step.replayed().work.front().size(), 3u);
  EXPECT_TRUE(step.replays_as_captured());
}

TEST(Verify, APlanMayBeReplacedByAnother) {
  auto plan = verify(typed(kSound), declared(PlanKind::Safe));
  plan = verify(typed("[1, 1, -1, -1]"), declared(PlanKind::Te));
  const PlannedStep& step = std::get<VerifiedPlan>(plan).step();
  EXPECT_EQ(step.view().plan().kind, PlanKind::Te);
  EXPECT_EQ(step.captured().work.front().size(), 4u);
}

TEST(Verify, WhatIsRejectedIsNoVerifiedPlan) {
  const auto plan = verify(typed(kHazard), declared(PlanKind::Te));
  const auto* why = std::get_if<NotVerified>(&plan);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->reason, "it is not accepted");
  EXPECT_EQ(why->result.verdict, Verdict::Rejected);
}

TEST(Verify, WithoutAPlanOrWithoutSizesThereIsNothingToRun) {
  const auto unplanned = verify(typed(kSound), declared(std::nullopt));
  EXPECT_EQ(std::get<NotVerified>(unplanned).reason, "no plan was asked for");
  const auto unsized = verify(typed(kSound), declared(PlanKind::Safe, false));
  EXPECT_EQ(std::get<NotVerified>(unsized).reason, "the sizes of its buffers are not known");
}

TEST(Verify, TheDoorOpensForHazards) {
  const auto plan = admit_unchecked(typed(kHazard), declared(PlanKind::Te));
  const auto* unchecked = std::get_if<UncheckedPlan>(&plan);
  ASSERT_NE(unchecked, nullptr);
  EXPECT_EQ(unchecked->step().result().verdict, Verdict::Rejected);
  EXPECT_FALSE(unchecked->step().view().hazards().empty());
}

TEST(Verify, TheDoorStaysShutForOtherFaultsAndNamesTheRule) {
  const auto plan = admit_unchecked(typed("[1, 1, -1]"), declared(PlanKind::Te));
  EXPECT_TRUE(std::get<NotVerified>(plan).reason.ends_with(
      "(shape) leaves nothing to run: only faults of buffers, streams, replays, gradients and "
      "captures can be run unchecked"))
      << std::get<NotVerified>(plan).reason;
}

TEST(Verify, AReplayOrderHasACourseOfItsOwn) {
  const auto plan = admit_unchecked(
      typed(
          "capo 1\nmicrobatches 2\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 F1 B1 W1 B1 W1\n"),
      declared(PlanKind::Te));
  const auto* unchecked = std::get_if<UncheckedPlan>(&plan);
  ASSERT_NE(unchecked, nullptr);
  EXPECT_FALSE(unchecked->step().replays_as_captured());
  EXPECT_EQ(unchecked->step().captured().work.front()[1].kind, Kind::Backward);
  EXPECT_EQ(unchecked->step().replayed().work.front()[1].kind, Kind::Forward);
}

TEST(Verify, AReplayOrderThatIsTheCaptureIsNoneOfItsOwn) {
  const std::string capture = "capo 1\nmicrobatches 2\nrank 0: F1 F1 B1 W1 B1 W1\n";
  const auto plan =
      verify(typed(capture + "rank 0 replay: F1 F1 B1 W1 B1 W1\n"), declared(PlanKind::Safe));
  const auto* verified = std::get_if<VerifiedPlan>(&plan);
  ASSERT_NE(verified, nullptr);
  EXPECT_TRUE(verified->step().replays_as_captured());
}

// The same actions in another composite run beside others.
TEST(Verify, AReplayInOtherCompositesHasACourseOfItsOwn) {
  const std::string capture = "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1\n";
  const auto plan =
      verify(typed(capture + "rank 0 replay: F1.0 (F1.1 B1.0) B1.1\n"), declared(PlanKind::Safe));
  const auto* verified = std::get_if<VerifiedPlan>(&plan);
  ASSERT_NE(verified, nullptr);
  EXPECT_FALSE(verified->step().replays_as_captured());
}

TEST(Verify, WhatIsTooLargeIsNotJudged) {
  CheckOptions options = declared(PlanKind::Safe);
  options.plan.max_buffers = 1;
  EXPECT_EQ(std::get<NotVerified>(verify(typed(kSound), options)).reason, "it is not accepted");
  EXPECT_EQ(std::get<NotVerified>(admit_unchecked(typed(kSound), options)).reason.substr(0, 3),
            "I02");
}

TEST(Verify, WithoutAPlanNothingIsAdmittedUncheckedEither) {
  EXPECT_EQ(std::get<NotVerified>(admit_unchecked(typed(kSound), declared(std::nullopt))).reason,
            "no plan was asked for");
}

TEST(Verify, AdmitsWhatIsPlannedAndFailsOnlyInWhatCanBeRun) {
  const auto admitted = [](const char* order, const CheckOptions& options) {
    return can_be_admitted(check(typed(order), options));
  };
  EXPECT_TRUE(admitted(kHazard, declared(PlanKind::Te)));
  EXPECT_FALSE(admitted(kHazard, declared(std::nullopt)));
  EXPECT_FALSE(admitted("[1, -1, -1]", declared(PlanKind::Te)));
  CheckOptions small = declared(PlanKind::Safe);
  small.plan.max_buffers = 1;
  EXPECT_FALSE(admitted(kSound, small));
}

}  // namespace
}  // namespace capo
