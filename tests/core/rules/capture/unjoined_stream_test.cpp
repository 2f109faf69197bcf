#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn", .kind = ModuleKind::Linear, .flags = {.unjoined_stream = true}};

TEST(UnjoinedStream, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C03");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` starts work on another stream that nothing waits for: the capture of "
            "`1` at index 0 cannot end (cudaErrorStreamCaptureUnjoined)");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{1, 1}, "its capture does not end"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text = "record an event behind that work, and let the captured stream wait for it"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(UnjoinedStream, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` starts "
            "work on another stream that nothing waits for: the capture of `1` at index 0 cannot "
            "end (cudaErrorStreamCaptureUnjoined)");
  EXPECT_TRUE(checked.accepted());
}

TEST(UnjoinedStream, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Capture).empty());
}

TEST(UnjoinedStream, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear}, "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "it comes back";
}

}  // namespace
}  // namespace capo
