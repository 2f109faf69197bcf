#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::Linear,
                     .flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}};

TEST(NoGradient, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C06");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(
      found[0].message,
      "module `attn` hands nobody a gradient: its input needs none and its weight's is not "
      "returned, so that the capture of `-1` at index 1 fails (cudaErrorStreamCaptureIsolation)");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{4, 2}, "its capture fails"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "give the parameter grad_added_to_main_grad and fuse_wgrad_accumulation, "
                          "so that backward returns a dummy"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 1, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(NoGradient, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` hands "
            "nobody a gradient: its input needs none and its weight's is not returned, so that the "
            "capture of `-1` at index 1 fails (cudaErrorStreamCaptureIsolation)");
  EXPECT_TRUE(checked.accepted());
}

TEST(NoGradient, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Capture).empty());
}

TEST(NoGradient, LeavesOtherModulesAlone) {
  EXPECT_TRUE(
      check_module(
          {.name = "attn", .kind = ModuleKind::Linear, .flags = {.fuse_wgrad_accumulation = true}},
          "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "the input gets one";
  EXPECT_TRUE(
      check_module(
          {.name = "attn", .kind = ModuleKind::Linear, .flags = {.input_requires_grad = false}},
          "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "a real weight gradient is returned";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.fuse_wgrad_accumulation = true,
                                      .grad_added_to_main_grad = true,
                                      .input_requires_grad = false}},
                           "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "a dummy is returned";
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::Linear,
           .flags = {.fuse_wgrad_accumulation = true, .bias = true, .input_requires_grad = false}},
          "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "the bias gets one";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::LayerNormLinear,
                    .flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}},
                   "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "the norm gets one";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}},
                   "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "nothing is known of the kind";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .flags = {.delay_wgrad = true, .input_requires_grad = false}},
                           "[1, -1, -1.5]")
                  .of(Family::Capture)
                  .empty())
      << "the buffer of W is returned";
}

TEST(NoGradient, OfADelayedModuleIsNoneEvenWithABias) {
  EXPECT_EQ(check_module({.name = "attn",
                          .kind = ModuleKind::Linear,
                          .flags = {.delay_wgrad = true,
                                    .fuse_wgrad_accumulation = true,
                                    .bias = true,
                                    .input_requires_grad = false}},
                         "[1, -1, -1.5]")
                .of(Family::Capture)
                .size(),
            1u);
  EXPECT_EQ(check_module({.name = "attn",
                          .kind = ModuleKind::GroupedLinearOp,
                          .flags = {.delay_wgrad = true,
                                    .fuse_wgrad_accumulation = true,
                                    .bias = true,
                                    .input_requires_grad = false}},
                         "[1, -1, -1.5]")
                .of(Family::Capture)
                .size(),
            0u)
      << "B makes the bias gradient of an operation";
}

}  // namespace
}  // namespace capo
