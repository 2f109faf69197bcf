// A schedule written in a form reads back there, or there is a reason why it cannot be written.

#include "core/convert/written.h"

#include "core/input/load.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Schedule read(const std::string& text) {
  return load(Source{.name = "-", .text = text}, {}).value().schedule;
}

std::string reason(const std::string& text, TextForm form, Beside beside = Beside::Refuse) {
  const auto out = written(read(text), form, beside);
  return out ? "" : out.error().reason;
}

TEST(Written, IsTheTextOfEachForm) {
  const Schedule schedule = read("[1, -1]");
  EXPECT_EQ(written(schedule, TextForm::TeList).value(), "[1, -1]\n");
  EXPECT_EQ(written(schedule, TextForm::TorchCsv).value(), "0F0,0B0\n");
  EXPECT_EQ(written(schedule, TextForm::OrderFile).value(), "capo 1\nranks 1\nrank 0: F1 B1\n");
  EXPECT_TRUE(written(schedule, TextForm::Json).value().starts_with("{"));
}

TEST(Written, OfSeveralRanksIsAListALine) {
  const Schedule schedule = read("[1, 1, -1, -1]\n[1, -1, 1, -1]\n");
  ASSERT_EQ(schedule.ranks.size(), 2U);
  EXPECT_EQ(written(schedule, TextForm::TeList).value(), "[1, 1, -1, -1]\n[1, -1, 1, -1]\n");
}

// Lists are not wired, so ranks that wait for each other as stages would not as lists.
TEST(Written, ListsOfRanksThatWaitForEachOtherSayWhatIsLost) {
  EXPECT_EQ(
      reason("capo 1\nplacement chain\nrank 0: F1 B1 F1 B1\nrank 1: F1 F1 B1 B1\n",
             TextForm::TeList),
      "a TE list does not say which stages its chunks are, and as those that are declared they "
      "break D04");
}

TEST(Written, IsNothingThatItsReaderRefuses) {
  Schedule mixed = read("capo 1\nrank 0: F1.0 B1.0\n");
  mixed.ranks[0].order[1].microbatch = kNoMicrobatch;
  const auto out = written(mixed, TextForm::OrderFile);
  ASSERT_FALSE(out);
  EXPECT_TRUE(out.error().reason.starts_with("it would be refused there, ")) << out.error().reason;
  EXPECT_EQ(reason("capo 1\nplacement custom\nrank 0 stages\nrank 0:\n", TextForm::TorchCsv,
                   Beside::Drop),
            "it would be refused there, the input holds no table");
}

TEST(Written, IsNoTableWithTransfersAndIdleSlots) {
  for (const Beside beside : {Beside::Refuse, Beside::Drop}) {
    EXPECT_EQ(reason("capo 1\nrank 0: F1.0 . send-F1.0 B1.0\n", TextForm::TorchCsv, beside),
              "a table with transfers has no idle slots");
  }
}

// An own form lists the stages of each rank, and so says that this one is to have none.
TEST(Written, IsNoOwnFormOfARowWithoutStages) {
  for (const TextForm form : {TextForm::OrderFile, TextForm::Json}) {
    EXPECT_EQ(reason("0F0,0B0\n\n", form),
              "it would declare that rank 1 is to hold no chunk, of which nothing is said");
  }
  EXPECT_EQ(written(read("0F0,0B0\n\n"), TextForm::TorchCsv).value(), "0F0,0B0\n\n");
}

TEST(Written, LeavesOutWhatIsToBeDropped) {
  const auto lossy = [](const std::string& text, TextForm form) {
    return written(read("capo 1\n" + text), form, Beside::Drop).value();
  };
  for (const char* declared : {"delayed none", "microbatches 3", "chunks 3", "layers 2",
                               "layers none", "stages 3\nplacement chain"}) {
    const std::string text = std::string(declared) + "\nrank 0: F1.0 B1.0 W1.0\n";
    EXPECT_EQ(lossy(text, TextForm::TeList), "[1, -1, -1.5]\n") << declared;
    EXPECT_EQ(lossy(text, TextForm::TorchCsv), "0F0,0I0,0W0\n") << declared;
  }
  EXPECT_EQ(lossy("delayed 1\nrank 0: F1.0 B1.0\n", TextForm::TeList), "[1, -1]\n");
}

}  // namespace
}  // namespace capo
