#include "core/profiles/consult.h"

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;

TEST(Consult, PutsEveryRankToTe) {
  const auto checked = check_text("capo 1\nrank 0: F1 B1\nrank 1: B1 F1\n");
  const Opinion te = consult_te(checked.input, {});
  EXPECT_EQ(te.accepts, false);
  EXPECT_EQ(te.error_kind, "py.KeyError");
  EXPECT_TRUE(te.reason.starts_with("rank 1: py.KeyError in warm-up, at index 0")) << te.reason;
}

TEST(Consult, DoesNotPutWhatTheNotationCannotSay) {
  const auto checked = check_csv("0F1,0F0,0B0,0B1\n");
  const Opinion te = consult_te(checked.input, {});
  EXPECT_FALSE(te.accepts);
  EXPECT_FALSE(te.error_kind);
  EXPECT_EQ(te.reason, "a TE list runs the microbatches of a chunk first in, first out");
}

TEST(Consult, LeavesDispatchAndCombineOutForTeAndDoesNotPutThemToTorch) {
  const auto checked = check_text("capo 1\nrank 0: F1.0 dispatch-F1.0 (combine-B1.0 B1.0)\n");
  EXPECT_EQ(consult_te(checked.input, {}).accepts, true);
  const Opinion torch = consult_torch(checked.input);
  EXPECT_FALSE(torch.accepts);
  EXPECT_FALSE(torch.error_kind);
  EXPECT_EQ(torch.reason, "a table has no notation for dispatch and combine");
  EXPECT_EQ(torch.where, (Span{20, 13}));
}

TEST(Consult, AddsMegatronsRuleToTesVerdict) {
  const auto loose = check_te("[1, 2, -2, -1, -2.5, -1.5]");
  EXPECT_EQ(consult_te(loose.input, {}).accepts, true);
  EXPECT_EQ(consult_mcore(loose.input, {}).error_kind, "mcore.order");
  const auto twice = check_te("[1, 1, -1, -1, -1.5, -1.5]");
  EXPECT_EQ(consult_mcore(twice.input, {}).error_kind, "torch.RuntimeError");
}

TEST(Consult, JudgesMegatronsConfigurationFirst) {
  const auto checked = check_te("[1, -1]");
  const ConsultOptions options{
      .megatron = mcore::Configuration{.pipeline = 4, .virtual_stages = 2, .microbatches = 6}};
  const Opinion mcore = consult_mcore(checked.input, options);
  EXPECT_EQ(mcore.error_kind, "mcore.configuration");
  EXPECT_EQ(mcore.reason, "the configuration is refused: last microbatch group is smaller than PP");
}

TEST(Consult, ReportsTorchsThreeStepsAndItsMisreadings) {
  const auto checked = check_csv("0F0,0B0x\n", {.microbatches = 1});
  const Opinion torch = consult_torch(checked.input);
  EXPECT_EQ(torch.accepts, true);
  EXPECT_EQ(torch.steps.at(0).second, "ok");
  EXPECT_EQ(torch.steps.at(1).second, "ok");
  EXPECT_EQ(torch.steps.at(2).second, "ok");
  ASSERT_EQ(torch.misreadings.size(), 1U);
  EXPECT_EQ(torch.misreadings[0].torch_reads, "0B0");
}

TEST(Consult, SaysWhereTorchGivesUpInLowering) {
  const auto checked = check_csv("0F0,0B0\n1B0,1F0\n", {.microbatches = 1});
  const Opinion torch = consult_torch(checked.input);
  EXPECT_EQ(torch.accepts, false);
  EXPECT_EQ(torch.error_kind, "torch.AssertionError");
}

}  // namespace
}  // namespace capo
