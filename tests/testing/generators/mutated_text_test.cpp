#include <capo/testing/generators/mutated_text.h>

#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <map>

namespace capo::testing {
namespace {

TEST(MutatedText, OfEveryFormIsSometimesReadAndSometimesRefused) {
  std::map<TextForm, int> read;
  std::map<TextForm, int> refused;
  for (const MutatedText& mutated : sample(mutated_text(), 2000)) {
    const auto input = load(Source{.text = mutated.text}, {.form = mutated.form});
    ++(input ? read : refused)[mutated.form];
  }
  for (const TextForm form :
       {TextForm::TeList, TextForm::OrderFile, TextForm::TorchCsv, TextForm::Json}) {
    EXPECT_GT(read[form], 50);
    EXPECT_GT(refused[form], 50);
  }
}

TEST(MutatedText, ShrinksToNothing) {
  for (const auto& shrinkable : sample_shrinkables(mutated_text(), 20)) {
    EXPECT_EQ(shrink_path(shrinkable).back().text, "");
  }
}

}  // namespace
}  // namespace capo::testing
