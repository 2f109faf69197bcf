#include "core/input/load.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

TEST(Load, KnowsAFormByItsName) {
  EXPECT_EQ(detect_form("x.order", "[1]"), TextForm::OrderFile);
  EXPECT_EQ(detect_form("x.csv", "[1]"), TextForm::TorchCsv);
  EXPECT_EQ(detect_form("x.json", "1 -1"), TextForm::Json);
}

TEST(Load, ReadsAListInAFileOfJson) {
  EXPECT_EQ(detect_form("x.json", "[1, -1]"), TextForm::TeList);
  EXPECT_EQ(detect_form("x.json", "\n[[1, -1], [1, -1]]"), TextForm::TeList);
}

TEST(Load, KnowsAFormByItsBeginning) {
  EXPECT_EQ(detect_form("-", " {\"order\": [1]}"), TextForm::Json);
  EXPECT_EQ(detect_form("-", "# x\ncapo 1\n"), TextForm::OrderFile);
  EXPECT_EQ(detect_form("-", "0F0,0B0\n"), TextForm::TorchCsv);
  EXPECT_EQ(detect_form("-", ",1F0\n"), TextForm::TorchCsv);
  EXPECT_EQ(detect_form("-", "(0F0;0B1)OVERLAP_F_B"), TextForm::TorchCsv);
  EXPECT_EQ(detect_form("-", "[1, -1]"), TextForm::TeList);
  EXPECT_EQ(detect_form("-", "1 -1(dgrad)"), TextForm::TeList);
  EXPECT_EQ(detect_form("-", ""), TextForm::TeList);
}

TEST(Load, HandsTheSourceOnEitherWay) {
  const auto input = load({.name = "a", .text = "[1, -1]"}, {});
  EXPECT_EQ(input->source.name, "a");
  const auto refused = load({.name = "b", .text = "[1"}, {});
  EXPECT_EQ(refused.error().source.text, "[1");
}

TEST(Load, HoldsDeclarationsToTheLimit) {
  LoadOptions options{.limits = {.counts = 4}};
  options.te.microbatches = 4;
  EXPECT_TRUE(load({.name = "a", .text = "[1, -1]"}, options));
  options.te.microbatches = 5;
  EXPECT_EQ(load({.name = "a", .text = "[1, -1]"}, options).error().refusal.kind,
            Refusal::Kind::Limit);
}

}  // namespace
}  // namespace capo
