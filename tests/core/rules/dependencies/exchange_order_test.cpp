#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_text;
using testing_support::Checked;

Checked check_rank(const std::string& order) {
  return check_text("capo 1\nrank 0: " + order + "\n");
}

std::vector<std::string> messages(const std::string& order) {
  std::vector<std::string> all;
  const Checked checked = check_rank(order);
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "D06");
    EXPECT_EQ(finding.family, Family::Dependencies);
    all.push_back(finding.message);
  }
  return all;
}

using Messages = std::vector<std::string>;

TEST(ExchangeOrder, ShowsTheForwardThatComesLater) {
  const Checked checked = check_rank("dispatch-F1.0 F1.0 B1.0");
  ASSERT_EQ(checked.result.diagnostics.kept().size(), 1U);
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`dispatch-F1.0` at index 0 runs before `F1.0` at index 1, which makes the tokens that "
            "it takes along");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{15, 13}, ""}, {{29, 4}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `dispatch-F1.0` behind `F1.0`"}));
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 0, "dispatch-F1.0", "dispatch-F(c1,m0)"},
                                        {0, 1, "F1.0", "F(c1,m0)"}}));
}

TEST(ExchangeOrder, TokensOfAForwardAreBackForTheBackward) {
  EXPECT_EQ(messages("F1.0 dispatch-F1.0 B1.0 combine-F1.0"),
            Messages{"`combine-F1.0` at index 3 runs behind `B1.0` at index 2, which needs the "
                     "tokens in their place"});
  EXPECT_EQ(messages("F1.0 combine-B1.0 dispatch-F1.0 B1.0"),
            Messages{"`dispatch-F1.0` at index 2 runs behind `combine-B1.0` at index 1, which "
                     "belongs to the backward already"});
}

TEST(ExchangeOrder, ABackwardExchangesBeforeItOrBehindIt) {
  EXPECT_TRUE(check_rank("F1.0 combine-B1.0 dispatch-B1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("F1.0 B1.0 combine-B1.0 dispatch-B1.0").accepted());
  EXPECT_EQ(messages("F1.0 combine-B1.0 B1.0 dispatch-B1.0"),
            Messages{"`dispatch-B1.0` at index 3 runs behind `B1.0` at index 2, which so computes "
                     "while the tokens are away"});
  EXPECT_EQ(messages("combine-B1.0 F1.0 dispatch-B1.0 B1.0"),
            Messages{"`combine-B1.0` at index 0 runs before `F1.0` at index 1, which makes the "
                     "tokens that it takes along"});
}

TEST(ExchangeOrder, OfASplitBackwardTheInputHalfIsMeant) {
  EXPECT_EQ(messages("F1.0 combine-B1.0 I1.0 dispatch-B1.0 W1.0").size(), 1U);
  EXPECT_TRUE(check_rank("F1.0 combine-B1.0 dispatch-B1.0 I1.0 W1.0").accepted());
}

TEST(ExchangeOrder, InACompositeNothingIsBeforeOrBehind) {
  EXPECT_EQ(messages("(F1.0 dispatch-F1.0) B1.0"),
            Messages{"`dispatch-F1.0` at index 0 runs together with `F1.0`, which makes the tokens "
                     "that it takes along"});
  EXPECT_EQ(messages("F1.0 (combine-B1.0 B1.0)"),
            Messages{"`combine-B1.0` at index 1 runs together with `B1.0`, which needs the "
                     "tokens in their place"});
  EXPECT_TRUE(check_rank("F1.0 F1.1 (B1.0 dispatch-F1.1) B1.1").accepted());
}

TEST(ExchangeOrder, AMicrobatchThatDoesNotRunHasNoTokens) {
  const Messages none{
      "`dispatch-F1.7` at index 1 takes tokens of microbatch 7 along, which chunk 1 does not run"};
  EXPECT_EQ(messages("F1.0 dispatch-F1.7 B1.0"), none);
  EXPECT_EQ(messages("F1.0 combine-B1.7 B1.0").size(), 1U);
}

TEST(ExchangeOrder, OfAMissingBackwardOtherRulesSpeak) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.0\n").findings(),
            std::vector<std::string>{"S21@0"});
}

TEST(ExchangeOrder, WithoutItsForwardAMicrobatchHasNoTokens) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 2\nrank 0: F1.0 B1.0 dispatch-B1.1 B1.1\n").findings(),
            (std::vector<std::string>{"D06@2", "S21@3"}));
}

TEST(ExchangeOrder, CountedExchangesAreMicrobatchesByTheirNumber) {
  EXPECT_TRUE(check_rank("F1 F1 dispatch-F1 dispatch-F1 B1 B1").accepted());
  EXPECT_EQ(messages("F1 dispatch-F1 dispatch-F1 B1").size(), 1U);
}

}  // namespace
}  // namespace capo
