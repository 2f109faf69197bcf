#include <capo/testing/generators/moved_transfers.h>

#include <capo/core/graph/lowered.h>
#include <capo/core/rules/check.h>
#include <capo/testing/oracle_pipeline.h>
#include <capo/testing/representable.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace capo::testing {
namespace {

// What the generator is for: each of the two answers, and environments that differ in it.
TEST(MovedTransfers, FinishOrNotAndDependOnHowRanksCommunicate) {
  std::map<Communicators, std::size_t> finish;
  std::size_t buffered = 0;
  std::size_t mixed_up = 0;
  const auto schedules = sample(moved_transfers(), 500);
  for (const Schedule& schedule : schedules) {
    const StageMap map(schedule);
    const auto run = [&](Communicators communicators, TransferMode mode) {
      return oracle::finishes(oracle_pipeline(as_written(schedule), map,
                                              {.communicators = communicators, .transfers = mode}));
    };
    for (const Communicators layout :
         {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
      finish[layout] += run(layout, TransferMode::Rendezvous) ? 1u : 0u;
    }
    buffered += run(Communicators::PerRank, TransferMode::Buffered) ? 1u : 0u;
    mixed_up += oracle::mixes_up(oracle_pipeline(as_written(schedule), map, {})) ? 1u : 0u;
  }
  EXPECT_GT(finish[Communicators::PerRank], 100u);
  EXPECT_GT(finish[Communicators::PerPair], finish[Communicators::PerRank]);
  EXPECT_GT(finish[Communicators::PerEdge], finish[Communicators::PerPair]);
  EXPECT_LT(finish[Communicators::PerEdge], 450u);
  EXPECT_GT(buffered, finish[Communicators::PerRank]);
  EXPECT_GT(mixed_up, 100u);
  EXPECT_LT(mixed_up, 400u);
}

TEST(MovedTransfers, HaveEveryTransferOnceAndWhatTheyComputeUntouched) {
  for (const Schedule& schedule : sample(moved_transfers(), 200)) {
    EXPECT_FALSE(unrepresentable(schedule)) << rc::toString(schedule);
    Schedule bare = schedule;
    std::size_t transfers = 0;
    for (RankOrder& rank : bare.ranks) {
      std::set<Action> seen;
      for (const Entry& entry : rank.order) {
        if (!is_transfer(entry.kind)) continue;
        ++transfers;
        EXPECT_TRUE(seen.insert(entry.action()).second) << rc::toString(schedule);
      }
      std::erase_if(rank.order, [](const Entry& entry) { return is_transfer(entry.kind); });
    }
    EXPECT_GT(transfers, 0u);
    const CheckResult result = check({.form = Form::OrderFile, .schedule = bare});
    EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(schedule);
  }
}

TEST(MovedTransfers, FuseSome) {
  std::size_t fused = 0;
  for (const Schedule& schedule : sample(moved_transfers(), 100)) {
    for (const RankOrder& rank : schedule.ranks) {
      fused += static_cast<std::size_t>(
          std::count_if(rank.order.begin(), rank.order.end(), [](const Entry& entry) {
            return is_transfer(entry.kind) && entry.group == Group::Continues;
          }));
    }
  }
  EXPECT_GT(fused, 50u);
}

TEST(MovedTransfers, ShrinkToOneMicrobatchWithoutGroups) {
  for (const auto& shrinkable : sample_shrinkables(moved_transfers(), 50)) {
    const Schedule smallest = shrink_path(shrinkable).back();
    EXPECT_EQ(smallest.microbatches, 1);
    for (const RankOrder& rank : smallest.ranks) {
      for (const Entry& entry : rank.order) EXPECT_EQ(entry.group, Group::Alone);
    }
  }
}

}  // namespace
}  // namespace capo::testing
