// Collectives that two ranks walk over messages of threads: each has a number of its own, and
// members that are at different ones wait for ever, as the model has it.

#include "core/rules/wiring.h"
#include "run/processes/walk_all.h"
#include "tests/run/processes/thread_library.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

struct WalkedByTwo {
  std::string difference;
  std::set<int> tags;  // of all messages of the collectives
};

WalkedByTwo walked_by_two(const std::string& actions_of_0, const std::string& actions_of_1,
                          int largest_tag = 1000) {
  const Input input = typed("capo 1\nranks 2\nmicrobatches 1\nrank 0: " + actions_of_0 +
                            "\nrank 1: " + actions_of_1 + "\n");
  const std::vector<CollectiveGroup> groups{
      {.name = "dp", .members = {0, 1}, .actions = {Kind::ReduceGradient}}};
  const Wiring wiring(input.schedule, {}, groups, 1, false);
  const Walkable of = walkable(wiring);
  WalkedByTwo walked;
  Post post(2);
  post.largest_tag = largest_tag;
  in_each(post, 60s, [&](Processes& processes) {
    const WalkedRanks ranks = walk_all(processes, of);
    if (processes.rank() == 0) walked.difference = difference(of, ranks);
  });
  if (post.sends.empty()) return walked;
  const int of_group = std::get<0>(post.sends.rbegin()->first);  // communicators are made last
  for (const auto& [way, letters] : post.sends) {
    if (std::get<0>(way) == of_group) walked.tags.insert(std::get<3>(way));
  }
  return walked;
}

TEST(WalkedCollectives, AreNumberedOnceForAllRanks) {
  const std::string actions = "F1.0 F2.0 B2.0 B1.0 reduce2 reduce1";
  const WalkedByTwo walked = walked_by_two(actions, actions);
  EXPECT_EQ(walked.difference, "");
  EXPECT_EQ(walked.tags, (std::set<int>{0, 1}));
}

TEST(WalkedCollectives, AreNotWalkedWithMoreTagsThanThereAre) {
  const std::string actions = "F1.0 F2.0 B2.0 B1.0 reduce2 reduce1";
  EXPECT_EQ(walked_by_two(actions, actions, 0).difference,
            "2 collectives have a tag each, and the library of threads has none above 0");
}

TEST(WalkedCollectives, ThatDifferAtTheSamePointAreNeverOver) {
  const WalkedByTwo walked =
      walked_by_two("F1.0 F2.0 B2.0 B1.0 reduce2 reduce1", "F1.0 F2.0 B2.0 B1.0 reduce1 reduce2");
  EXPECT_EQ(walked.difference, "");
  EXPECT_EQ(walked.tags, (std::set<int>{0, 1}));
}

}  // namespace
}  // namespace capo::run
