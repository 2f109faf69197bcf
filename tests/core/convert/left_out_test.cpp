// The declarations that a TE list and a table leave out, and those that they need not state.

#include "core/convert/written.h"

#include "core/convert/written.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Result<std::string, Inexpressible> as(TextForm form, const std::string& text) {
  return written(read_order_file("capo 1\n" + text, {}).value(), form);
}

// Returns the text, or the reason why there is none.
std::string list(const std::string& text) {
  const auto out = as(TextForm::TeList, text);
  return out ? *out : out.error().reason;
}
std::string table(const std::string& text) {
  const auto out = as(TextForm::TorchCsv, text);
  return out ? *out : out.error().reason;
}

TEST(LeftOut, IsNothingWhereTheReaderInfersTheSame) {
  const std::string order = "rank 0: F1.0 F2.0 B2.0 B1.0 W1.0\n";
  for (const char* declared : {"", "delayed 1\n", "microbatches 1\n", "chunks 2\n", "layers 1,1\n",
                               "stages 2\n", "placement chain\n", "stages 2\nplacement chain\n"}) {
    EXPECT_EQ(list(declared + order), "[1, 2, -2, -1, -1.5]\n") << declared;
    EXPECT_EQ(table(declared + order), "0F0,1F0,1B0,0I0,0W0\n") << declared;
  }
}

TEST(LeftOut, IsANumberOfMicrobatches) {
  EXPECT_EQ(list("microbatches 3\nrank 0: F1.0 B1.0\n"),
            "a TE list does not say how many microbatches the step has (declared 3, shown 1)");
  EXPECT_EQ(table("microbatches 3\nrank 0: F1.0 B1.0\n"),
            "a table does not say how many microbatches the step has (declared 3, shown 1)");
}

TEST(LeftOut, IsANumberOfChunks) {
  EXPECT_EQ(list("chunks 3\nrank 0: F1.0 B1.0\n"),
            "a TE list does not say how many chunks there are (declared 3, shown 1)");
  EXPECT_EQ(list("chunks 1\nrank 0: F1.0 F2.0 B2.0 B1.0\n"),
            "a TE list does not say how many chunks there are (declared 1, shown 2)");
  EXPECT_EQ(table("placement loop\nrank 1 chunks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n"),
            "a table does not say how many chunks there are of rank 1 (declared 2, shown 1)");
  EXPECT_EQ(list("chunks 0\nrank 0:\n"), "a TE list does not say that there are to be no chunks");
  EXPECT_EQ(table("placement custom\nrank 0 stages 0\nrank 1 stages\nrank 2 stages 1\n"
                  "rank 0: F1.0 B1.0\nrank 1:\nrank 2: F1.0 B1.0\n"),
            "a table does not say that there are to be no chunks of rank 1");
}

TEST(LeftOut, IsWhoDelaysWeightGradients) {
  const std::string words =
      " says by its entries alone whether chunk 1 delays its weight gradients, and it is declared "
      "otherwise";
  EXPECT_EQ(list("delayed 1\nrank 0: F1.0 B1.0\n"), "a TE list" + words);
  EXPECT_EQ(list("delayed none\nrank 0: F1.0 B1.0 W1.0\n"), "a TE list" + words);
  EXPECT_EQ(table("delayed none\nrank 0: F1.0 B1.0 W1.0\n"), "a table" + words);
  EXPECT_EQ(table("delayed 1\nrank 0: F1.0 I1.0 W1.0\n"), "a table" + words);
  EXPECT_EQ(table("delayed 1\nrank 0: F1.0 B1.0\n"), "0F0,0I0\n") << "a table says that";
  EXPECT_EQ(table("mixed 1\nrank 0: F1.0 B1.0\n"), "0F0,0B0\n") << "none of its backwards is split";
  EXPECT_EQ(table("mixed 1\nrank 0: F1.0 I1.0 W1.0\n"), "0F0,0I0,0W0\n") << "all of them are";
  Schedule surplus = read_order_file("capo 1\nrank 0: F1.0 B1.0\n", {}).value();
  surplus.ranks[0].delay = {Delay::Never, Delay::Always};
  EXPECT_EQ(
      written(surplus, TextForm::TeList).error().reason,
      "a TE list does not say how many chunks may delay their weight gradients (declared 2, shown "
      "1)");
}

TEST(LeftOut, StandsAtTheFirstBackwardOfTheChunk) {
  const auto out = as(TextForm::TeList, "delayed 1\nrank 0: F1.0 B1.0\n");
  ASSERT_TRUE(!out && out.error().span);
  EXPECT_EQ(out.error().span->offset, 30U);
  EXPECT_TRUE(out.error().droppable);
}

TEST(LeftOut, IsHowManyLayersAChunkHas) {
  for (const char* declared : {"layers 2\n", "layers none\n", "layers 1,2\n", "layers 1\n"}) {
    const std::string text = std::string(declared) + "rank 0: F1.0 F2.0 B2.0 B1.0\n";
    EXPECT_EQ(list(text), "a TE list does not say how many layers a chunk has") << declared;
    EXPECT_EQ(table(text), "a table does not say how many layers a chunk has") << declared;
  }
}

TEST(LeftOut, IsANumberOfStages) {
  EXPECT_EQ(table("stages 3\nplacement chain\nrank 0: F1.0 B1.0\n"),
            "a table does not say how many stages the model has (declared 3, shown 1)");
  EXPECT_EQ(list("stages 3\nplacement chain\nrank 0: F1.0 B1.0\n"),
            "a TE list does not say which stages its chunks are, and as those that are declared "
            "they break P02");
}

TEST(LeftOut, IsThatChunksAreStagesOrNone) {
  EXPECT_EQ(list("placement chain\nrank 0: F2.0 F1.0 B1.0 B2.0\n"),
            "a TE list does not say which stages its chunks are, and as those that are declared "
            "they break D03");
  EXPECT_EQ(table("rank 0: F2.0 F1.0 B1.0 B2.0\n"),
            "the chunks of a table are stages, one behind the other, and as those they break D03, "
            "which chunks that are not wired do not");
  EXPECT_EQ(table("placement chain\nrank 0: F2.0 F1.0 B1.0 B2.0\n"), "1F0,0F0,0B0,1B0\n");
  EXPECT_EQ(table("rank 0: F1.0 F3.0 B3.0 B1.0\n"), "0F0,2F0,2B0,0B0\n") << "wrong either way";
}

}  // namespace
}  // namespace capo
