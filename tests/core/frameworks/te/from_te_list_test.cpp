#include "core/frameworks/te/from_te_list.h"

#include "core/frameworks/te/list_text.h"
#include "core/text/action_token.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

TeReading read(const char* text, const TeDeclarations& declarations = {}) {
  return from_te_list(read_te_list(text, {}).value(), declarations);
}

std::string actions_of(const TeReading& reading) {
  std::string text;
  for (const Entry& entry : reading.schedule.ranks.at(0).order) {
    text += (text.empty() ? "" : " ") + to_token(entry.action(), Naming::Named);
  }
  return text;
}

TEST(FromTeList, NumbersMicrobatchesByKindAndChunk) {
  EXPECT_EQ(actions_of(read("[1, 2, 1, -2, -2.5, -1, 2, -1]")),
            "F1.0 F2.0 F1.1 B2.0 W2.0 B1.0 F2.1 B1.1");
}

TEST(FromTeList, LeavesOutWhatIsNoActionAndListsIt) {
  const TeReading reading = read("[1, nan, 0, 1.0, 1.5, -0.5, -1.25, inf, -1]");
  EXPECT_EQ(actions_of(reading), "F1.0 B1.0");
  EXPECT_EQ(reading.odd_entries, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7}));
}

// No list is so long that there could be a chunk of such a number; the entry is one all the same.
TEST(FromTeList, ReadsEntriesBeyondAnyChunkAsItReadsSmallOnes) {
  const TeReading reading = read(
      "[1, 3e9, 2000000000, -2000000000, -2000000000.5, -3000000000, -1, "
      "2000000000.0, 2000000000.5, -2000000000.25]");
  EXPECT_EQ(reading.odd_entries, (std::vector<std::uint32_t>{1, 7, 8, 9}));
  const std::vector<Entry>& order = reading.schedule.ranks.at(0).order;
  std::vector<Action> actions;
  for (const Entry& entry : order) actions.push_back(entry.action());
  EXPECT_EQ(actions, (std::vector<Action>{{.kind = Kind::Forward, .chunk = 1, .microbatch = 0},
                                          {.kind = Kind::Forward, .chunk = 2000000000},
                                          {.kind = Kind::Backward, .chunk = 2000000000},
                                          {.kind = Kind::BackwardWeight, .chunk = 2000000000},
                                          {.kind = Kind::Backward, .chunk = 2147483647},
                                          {.kind = Kind::Backward, .chunk = 1, .microbatch = 0}}));
}

TEST(FromTeList, TakesTheLargestUsableIdForTheNumberOfChunks) {
  EXPECT_EQ(read("[1, 3, -3, -1]").schedule.ranks.at(0).chunks, 3);
  EXPECT_EQ(read("[1, 5, -5, -1]").schedule.ranks.at(0).chunks, 1)
      << "four entries cannot hold five chunks";
  EXPECT_FALSE(read("[1, -1]").schedule.ranks.at(0).chunks_declared);
}

TEST(FromTeList, BelievesDeclarations) {
  const Layers two{.form = Layers::Form::List, .values = {1, 1}};
  EXPECT_EQ(read("[1, -1]", {.layers = two}).schedule.ranks.at(0).chunks, 2);
  const RankOrder by_need =
      read("[1, -1]", {.need_wgrad = std::vector{true, false, true}}).schedule.ranks.at(0);
  EXPECT_EQ(by_need.chunks, 3);
  EXPECT_EQ(*by_need.delay, (std::vector{Delay::Always, Delay::Never, Delay::Always}));
  const RankOrder all =
      read("[1, 2, -2, -1]", {.delayed = DelayedChunks{.all = true}}).schedule.ranks.at(0);
  EXPECT_EQ(*all.delay, (std::vector{Delay::Always, Delay::Always}));
}

}  // namespace
}  // namespace capo
