#include "core/minimise/same_edit.h"

#include "core/cures/cures.h"
#include "core/input/load.h"
#include "core/minimise/minimise.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

using testing_support::check_text;
using testing_support::Checked;

std::optional<CheckResult> judge(const std::string& text) {
  auto input = load(Source{.name = "<order>", .text = text}, {.form = TextForm::TeList});
  if (!input) return std::nullopt;
  return check(*input);
}

std::optional<Mistake> slip_in(const Checked& checked) {
  const auto slip = find_slip(checked.result, checked.input, judge);
  if (!slip) return std::nullopt;
  return Mistake{.position = slip->position, .meant = slip->meant};
}

// A list is cut with its slip, and without that demand.
struct Around {
  std::string with;
  std::string without;
  std::optional<Mistake> mistake;
};

Around around(const std::string& text, std::string_view rule) {
  const Checked checked = check_text(text);
  const auto mistake = slip_in(checked);
  EXPECT_TRUE(mistake.has_value());
  const auto with = minimise(checked.input, rule, {}, {.mistake = mistake});
  const auto without = minimise(checked.input, rule, {}, {});
  EXPECT_TRUE(with && without);
  if (!with || !without) return {};
  return {.with = print_order_file(with->schedule),
          .without = print_order_file(without->schedule),
          .mistake = with->mistake};
}

// One `-2` of two chunks over two microbatches stands for `-2.5`.
constexpr const char* kSlipped = "[1, 2, -2, -2, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]";

TEST(SameEdit, TheSlipStaysWhereTheRuleAloneNeedsLess) {
  const Around found = around(kSlipped, "S16");
  EXPECT_EQ(found.without, "capo 1\nranks 1\nrank 0: F1 W1 F1\n");
  EXPECT_EQ(found.with, "capo 1\nranks 1\nrank 0: F1 B1 B1 F1 B1 W1\n");
  ASSERT_TRUE(found.mistake.has_value());
  EXPECT_EQ(found.mistake->meant.kind, Kind::BackwardWeight);
  EXPECT_EQ(found.mistake->position, 2U);
}

TEST(SameEdit, AChunkWrittenForAnotherKeepsBothNumbers) {
  const Around found = around("[1, -1, 2, -2, 1, -2, 2, -2]", "S23");
  ASSERT_TRUE(found.mistake.has_value());
  EXPECT_EQ(found.mistake->meant.chunk, 1);
  EXPECT_EQ(found.with, "capo 1\nranks 1\nrank 0: F1 B2 F2 B2\n");
  EXPECT_EQ(found.without, "capo 1\nranks 1\nrank 0: B1 F1\n");
}

TEST(SameEdit, AnEntryIsFollowedThroughCuts) {
  const Checked checked = check_text(kSlipped);
  const Mistake slip{.position = 3, .meant = {.kind = Kind::BackwardWeight, .chunk = 2}};
  const Miswritten miswritten = miswritten_of(checked.input.schedule, slip);
  EXPECT_EQ(miswritten.kind, Kind::Backward);
  EXPECT_FALSE(miswritten.chunk.has_value());
  const Schedule meant = with_meant(checked.input.schedule, slip);
  const auto found = mistake_in(meant);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->position, 3U);
  EXPECT_FALSE(mistake_in(checked.input.schedule).has_value());
  const Schedule again = as_miswritten(meant, *found, miswritten);
  EXPECT_FALSE(mistake_in(again).has_value());
  EXPECT_EQ(print_order_file(again), print_order_file(checked.input.schedule));
}

TEST(SameEdit, AFindingStaysThatItsEditCures) {
  const Checked checked = check_text("[1, 2, 2, 1, -1, -1, -2, -1]");
  const auto least = minimise(checked.input, "S15", {}, {.same_cure = true});
  const auto without = minimise(checked.input, "S15", {}, {});
  ASSERT_TRUE(least && without);
  EXPECT_EQ(print_order_file(least->schedule), "capo 1\nranks 1\nrank 0: F1 B1 F2 B1\n");
  EXPECT_EQ(print_order_file(without->schedule), "capo 1\nranks 1\nrank 0: F1\n");
  EXPECT_FALSE(least->mistake.has_value());
}

TEST(SameEdit, CuresAreToldByTheLettersThatTheyChange) {
  const JudgeText order_judge = [](const std::string& text) -> std::optional<CheckResult> {
    return check_text(text).result;
  };
  const auto cures = [&](const std::string& text, std::string_view rule) {
    const Checked checked = check_text(text);
    return cures_of(checked.input, checked.result, rule, order_judge);
  };
  using Shapes = std::vector<std::string>;
  EXPECT_EQ(cures("capo 1\nrank 0: F1 B1 F2 B1\n", "S15"), Shapes{"B>B"});
  EXPECT_EQ(cures("capo 1\nrank 0: F1 B1 W1 F1 B1\n", "S16"), Shapes{">W"});
  EXPECT_EQ(cures("capo 1\nrank 0: F1 B1 W1 F1 B1\n", "S15"), Shapes{});
}

TEST(SameEdit, ARuleWithoutACureLeavesNothing) {
  const Checked checked = check_text("[1, -1, -1, -1.5]");
  EXPECT_TRUE(minimise(checked.input, "S15", {}, {}).has_value());
  EXPECT_FALSE(minimise(checked.input, "S15", {}, {.same_cure = true}).has_value());
}

}  // namespace
}  // namespace capo
