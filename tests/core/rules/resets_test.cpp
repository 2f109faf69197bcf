// The rules of core/rules/resets.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::shows;
using testing_support::warns;

Checked check_resets(const std::string& order) {
  return check_text("capo 1\nmicrobatches 2\nrank 0: " + order + "\n");
}

TEST(ReplayAfterReset, StandsAtTheFirstEntryOfEachMicrobatch) {
  expect_findings({
      {"NamesIt", check_resets("F1.0 B1.0 reset1 F1.1 B1.1"), "Y03@2",
       shows("error entries: 0:2 F1.1 F(c1,m1)")},
      {"OfEach", check_resets("reset F1.0 F1.1 B1.0 B1.1"), "Y03@0 Y03@1"},
      {"CountsWhereNobodyNames", check_text("capo 1\nrank 0: F1 B1 reset1.1 F1 B1\n"), "Y03@2"},
      {"LeavesOtherChunksAlone",
       check_resets("F1.0 B1.0 F1.1 B1.1 reset1 F2.0 B2.0 reset2.0 F2.1 B2.1")},
      {"LooksAtTheOrderThatIsReplayed",
       check_resets("F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.1 B1.1 reset1.1 F1.0 B1.0 reset1.0"),
       "Y01@0", warns()},
  });
}

TEST(ResetBeforeEnd, StandsAtTheFirstEntryThatComesTooLate) {
  expect_findings({
      {"NamesWhatWasBegun", check_resets("F1.0 F1.1 B1.0 reset1 B1.1"), "Y04@1",
       shows("error entries: 0:1 F1.1 F(c1,m1), 0:3 B1.1 B(c1,m1)")},
      {"OfAWeightGradientToo", check_resets("F1.0 F1.1 B1.0 W1.0 B1.1 reset1 W1.1"), "Y04@4"},
      {"GoesByTheEarliestReset", check_resets("F1.0 reset1.0 B1.0 reset1 F1.1 B1.1"),
       "Y04@0 Y03@2"},
      {"", check_resets("F1.0 reset B1.0 reset1.0 F1.1 B1.1"), "Y04@0 Y05@- Y03@2",
       because("what reset takes away first cannot be taken again")},
  });
}

TEST(ResetOfNothing, IsAWarningWhereTheGraphsAreGone) {
  expect_findings({
      {"", check_resets("F1.0 F1.1 B1.0 B1.1 reset1 reset"), "Y05@-", warns()},
      {"", check_resets("F1.0 F1.1 B1.0 B1.1 reset1.1 reset1.1"), "Y05@-", warns()},
      {"", check_resets("F1.0 F1.1 B1.0 B1.1 reset1.0 reset1.1 reset1"), "Y05@-", warns()},
      {"IsNoneWhereSomeAreLeft", check_resets("F1.0 F1.1 B1.0 B1.1 reset1.0 reset1")},
      {"IsAnErrorWhereThereNeverWereAny", check_resets("F1.0 F1.1 B1.0 B1.1 reset2"), "Y05@-",
       fails()},
      {"", check_resets("F1.0 F1.1 B1.0 B1.1 reset1.2"), "Y05@-", fails()},
  });
}

TEST(LetGoBeforeSent, IsAMatterOfTheLastGraphAndOfTheNewestGradient) {
  const auto check_plan = [](const PlanOptions& plan, const std::string& end) {
    return check_in({.plan = plan},
                    "capo 1\nmicrobatches 2\nplacement chain\n"
                    "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                    "rank 1: recv-F1.0 F1.0 B1.0 recv-F1.1 F1.1 B1.1 " +
                        end + "\n");
  };
  const PlanOptions te{.kind = PlanKind::Te, .aliases = Aliases{}};
  PlanOptions lenient = te;
  lenient.possible_is_error = false;
  const std::string both = "reset send-B1.0 send-B1.1";
  expect_findings({
      {"NamesTheSend", check_plan(te, both), "Y02@6",
       shows("error entries: 1:6 send-B1.0 send-B(c1,m0)")},
      {"IsUpToTheAllocator", check_plan(lenient, both), "Y02@6", warns()},
      {"NeedsThePlan", check_plan({.aliases = Aliases{}}, both)},
      {"", check_plan({.kind = PlanKind::Safe, .aliases = Aliases{}}, both)},
      {"LeavesTheNewestGradientAlone", check_plan(te, "send-B1.0 reset send-B1.1")},
      {"WaitsForTheLastGraph", check_plan(te, "reset1.0 send-B1.0 reset1.1 send-B1.1")},
      {"", check_plan(te, "reset1.1 reset1.0 send-B1.0 send-B1.1"), "Y02@6"},
  });
}

}  // namespace
}  // namespace capo
