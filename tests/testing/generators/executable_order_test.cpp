#include "testing/generators/executable_order.h"

#include "core/input/load.h"
#include "core/text/order_text.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/sound_schedule.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo::testing {
namespace {

Schedule read(const std::string& text) {
  return load(Source{.name = "<test>", .text = text}, {.form = TextForm::OrderFile})->schedule;
}

std::string rearranged(const std::string& text) {
  const std::string printed = print_order_file(in_executable_order(read(text)));
  return printed.substr(printed.find("rank 0"));
}

TEST(ExecutableOrder, NeedsStagesOneAfterTheOther) {
  EXPECT_TRUE(executable(read("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n")));
  EXPECT_FALSE(executable(read("capo 1\nplacement chain\nrank 0: F2.0 F1.0 B2.0 B1.0\n")));
  EXPECT_FALSE(executable(read("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B1.0 B2.0\n")));
  EXPECT_TRUE(executable(read("capo 1\nrank 0: F2.0 F1.0 B1.0 B2.0\n"))) << "not wired";
}

TEST(ExecutableOrder, NeedsForwardBackwardAndWeightInTurn) {
  EXPECT_FALSE(executable(read("capo 1\nrank 0: B1.0 F1.0\n")));
  EXPECT_FALSE(executable(read("capo 1\ndelayed all\nrank 0: F1.0 W1.0 B1.0\n")));
  EXPECT_TRUE(executable(read("capo 1\ndelayed all\nrank 0: F1.0 . B1.0 W1.0\n")));
}

TEST(ExecutableOrder, NeedsRanksThatDoNotWaitForEachOther) {
  const std::string rank0 = "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n";
  EXPECT_TRUE(executable(read(rank0 + "rank 1: F1.0 B1.0 F1.1 B1.1\n")));
  EXPECT_FALSE(executable(read(rank0 + "rank 1: F1.1 F1.0 B1.0 B1.1\n")));
  EXPECT_FALSE(executable(
      read(rank0 + "rank 1: F1.0 B1.0 F1.1 B1.1\nrank 1 replay: F1.1 F1.0 B1.0 B1.1\n")));
}

TEST(ExecutableOrder, NeedsAllInputsOfACompositeFirst) {
  EXPECT_FALSE(executable(read("capo 1\nplacement chain\nrank 0: (F1.0 F2.0) B2.0 B1.0\n")));
  EXPECT_TRUE(
      executable(read("capo 1\nplacement chain\nrank 0: F1.0 (F2.0 F1.1) F2.1 B2.0 B1.0\n")));
}

TEST(ExecutableOrder, RunsTheFirstThatMayRun) {
  EXPECT_EQ(rearranged("capo 1\nplacement chain\nrank 0: F2.0 F1.0 B1.0 B2.0\n"),
            "rank 0: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(rearranged("capo 1\nplacement chain\nrank 0: (F1.0 F2.0) B2.0 B1.0\n"),
            "rank 0: F1.0 F2.0 B2.0 B1.0\n")
      << "a composite is dissolved";
  EXPECT_EQ(rearranged("capo 1\nplacement chain\nrank 0: (F1.0 F1.1) F2.0 F2.1 B2.0 B1.0\n"),
            "rank 0: (F1.0 F1.1) F2.0 F2.1 B2.0 B1.0\n")
      << "what can be executed stays as it is";
}

TEST(ExecutableOrder, PutsWhatCanNeverRunLast) {
  EXPECT_EQ(rearranged("capo 1\nrank 0: B1.0 F1.1 B1.1\n"), "rank 0: F1.1 B1.1 B1.0\n");
}

TEST(ExecutableOrder, KeepsTheActionsAndCanBeExecuted) {
  for (Schedule schedule : sample(sound_schedule(), 200)) {
    EXPECT_TRUE(executable(schedule)) << rc::toString(schedule);
    schedule.topology = Topology::Chain;
    place_stages(schedule);
    const Schedule out = in_executable_order(schedule);
    EXPECT_TRUE(executable(out)) << rc::toString(schedule);
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      const auto sorted = [](const std::vector<Entry>& order) {
        std::vector<Action> actions;
        for (const Entry& entry : order) actions.push_back(entry.action());
        std::sort(actions.begin(), actions.end());
        return actions;
      };
      EXPECT_EQ(sorted(out.ranks[r].order), sorted(schedule.ranks[r].order));
      EXPECT_EQ(out.ranks[r].replay.has_value(), schedule.ranks[r].replay.has_value());
    }
  }
}

}  // namespace
}  // namespace capo::testing
