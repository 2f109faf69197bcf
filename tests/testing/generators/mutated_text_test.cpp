#include "testing/generators/mutated_text.h"

#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

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

TEST(MutatedText, IsHalfOfTheTimeJsonAndElseOfEachFormEquallyOften) {
  const auto texts = sample(mutated_text(), 2000);
  for (const auto& [form, odds] :
       {std::pair(TextForm::TeList, 1.0 / 6), std::pair(TextForm::OrderFile, 1.0 / 6),
        std::pair(TextForm::TorchCsv, 1.0 / 6), std::pair(TextForm::Json, 3.0 / 6)}) {
    const auto count = count_of(texts, [&](const MutatedText& text) { return text.form == form; });
    EXPECT_TRUE(is_share(count, texts.size(), odds));
  }
}

TEST(MutatedText, ShrinksToNothing) {
  for (const auto& shrinkable : sample_shrinkables(mutated_text(), 20)) {
    EXPECT_EQ(shrink_path(shrinkable).back().text, "");
  }
}

}  // namespace
}  // namespace capo::testing
