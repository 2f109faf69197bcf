// First uses of communicators: in which order each rank's host makes them, who waits for whom, and
// whom nobody can wait for.

#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/meetings.h"
#include "tests/core/graph/graph_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::read_schedule;
using testing_support::task_name;

using Lines = std::vector<std::string>;

struct Made {
  Lowered lowered;
  FirstUses uses;

  [[nodiscard]] bool all() const { return execute(uses.graph).finishes(); }
  [[nodiscard]] Lines tasks() const {
    Lines lines;
    for (TaskId id = 0; id < uses.graph.tasks.size(); ++id)
      lines.push_back(task_name(uses.graph, lowered, id));
    return lines;
  }
  // "0:send-F1.0 without 2"
  [[nodiscard]] Lines absences() const {
    Lines lines;
    for (const FirstUses::Absence& absence : uses.absences) {
      lines.push_back(task_name(uses.graph, lowered, absence.task) + " without " +
                      std::to_string(absence.member));
    }
    return lines;
  }
};

Made made(const std::string& orders, Communicators layout,
          const std::vector<CollectiveGroup>& groups = {}) {
  const Schedule schedule = read_schedule("microbatches 2\nplacement chain\n" + orders);
  Made result{.lowered = testing_support::own(as_written(schedule)), .uses = {}};
  const WiredTransfers wired =
      wire_transfers(result.lowered, StageMap(schedule), 2, {.communicators = layout}, groups);
  result.uses = wire_first_uses(wired.graph, groups);
  return result;
}

constexpr const char* kReceivesFirst =
    "rank 0: F1.0 recv-B1.0 send-F1.0 B1.0 F1.1 send-F1.1 recv-B1.1 B1.1\n"
    "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n";

TEST(FirstUses, AreOneForEachCommunicatorAndRank) {
  EXPECT_EQ(made(kReceivesFirst, Communicators::PerRank).tasks(),
            (Lines{"0:recv-B1.0", "1:recv-F1.0"}));
  EXPECT_EQ(made(kReceivesFirst, Communicators::PerPair).tasks(),
            (Lines{"0:recv-B1.0", "1:recv-F1.0"}));
  EXPECT_EQ(made(kReceivesFirst, Communicators::PerEdge).tasks(),
            (Lines{"0:recv-B1.0", "0:send-F1.0", "1:recv-F1.0", "1:send-B1.0"}));
}

TEST(FirstUses, InOtherOrdersHoldEachOther) {
  EXPECT_TRUE(made(kReceivesFirst, Communicators::PerPair).all());
  EXPECT_FALSE(made(kReceivesFirst, Communicators::PerEdge).all());
  EXPECT_FALSE(made(kReceivesFirst, Communicators::PerDirection).all());
}

TEST(FirstUses, NeedEveryMember) {
  const Made parent = made(
      "rank 0: F1.0 send-F1.0 F1.1 (send-F1.1 recv-B1.0) B1.0\n"
      "rank 1: recv-F1.0 F1.0 send-F1.0 recv-B1.0 B1.0 (send-B1.0 recv-F1.1) F1.1\n"
      "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n",
      Communicators::LazyHybrid);
  EXPECT_EQ(parent.absences(), Lines{"0:send-F1.1 without 2"});
  EXPECT_FALSE(parent.all());
}

TEST(FirstUses, OfGroupsAreTheirFirstCollectives) {
  const std::vector<CollectiveGroup> groups{
      {.name = "dp", .members = {0, 1}, .actions = {Kind::Unshard}, .streams = {}}};
  const auto with = [&](const std::string& of_rank_1) {
    return made("rank 0: unshard1 F1.0 send-F1.0 unshard1\nrank 1: " + of_rank_1 + "\n",
                Communicators::PerPair, groups);
  };
  const Made crossed = with("recv-F1.0 unshard1 F1.0 unshard1");
  EXPECT_EQ(crossed.tasks(), (Lines{"0:unshard1", "0:send-F1.0", "1:recv-F1.0", "1:unshard1"}));
  EXPECT_FALSE(crossed.all());
  EXPECT_TRUE(with("unshard1 recv-F1.0 F1.0 unshard1").all());
  EXPECT_EQ(with("recv-F1.0 F1.0").absences(), Lines{"0:unshard1 without 1"});
}

}  // namespace
}  // namespace capo
