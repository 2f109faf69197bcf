#include "testing/generators/moved_transfers.h"

#include "core/graph/lowered.h"
#include "core/rules/check.h"
#include "testing/oracle_pipeline.h"
#include "testing/representable.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace capo::testing {
namespace {

// The generator has to give each of the two answers, and environments that differ in it.
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

TEST(MovedTransfers, FuseOneInEightThatStandSideBySide) {
  std::vector<bool> fused;
  std::vector<std::int32_t> microbatches;
  for (const Schedule& schedule : sample(moved_transfers(), 1500)) {
    microbatches.push_back(*schedule.microbatches);
    for (const RankOrder& rank : schedule.ranks) {
      for (std::size_t at = 1; at < rank.order.size(); ++at) {
        if (is_transfer(rank.order[at - 1].kind) && is_transfer(rank.order[at].kind))
          fused.push_back(rank.order[at].group == Group::Continues);
      }
    }
  }
  EXPECT_TRUE(is_share(count_of(fused, [](bool is) { return is; }), fused.size(), 1.0 / 8));
  EXPECT_TRUE(are_even(microbatches, numbers(1, 3)));
}

// The place at which a receive's reader, or the composite that the reader is in, begins.
std::vector<Entry>::const_iterator reader_of(std::vector<Entry>::const_iterator receive,
                                             const std::vector<Entry>& order) {
  auto reader = std::find_if(receive, order.end(), [&](const Entry& entry) {
    return entry.chunk == receive->chunk && entry.microbatch == receive->microbatch &&
           (receive->kind == Kind::ReceiveForward ? entry.kind == Kind::Forward
                                                  : is_backward(entry.kind));
  });
  while (reader != order.end() && reader->group == Group::Continues) --reader;
  return reader;
}

// Only other receives stand between a receive and its reader.
bool receives_late(const Schedule& schedule) {
  return std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    const auto& order = rank.order;
    for (auto at = order.begin(); at != order.end(); ++at) {
      const auto next = std::find_if_not(at, order.end(),
                                         [](const Entry& entry) { return is_receive(entry.kind); });
      if (next != at && reader_of(at, order) != next) return false;
    }
    return true;
  });
}

Schedule as_pytorch_has_it(Schedule schedule) {
  for (RankOrder& rank : schedule.ranks)
    std::erase_if(rank.order, [](const Entry& entry) { return is_transfer(entry.kind); });
  return with_transfers(schedule);
}

// One in four does, and one in seven of these is not changed afterwards; most that are do no more.
TEST(MovedTransfers, ReceiveLateWherePyTorchDoesNot) {
  std::size_t late = 0;
  std::size_t of = 0;
  for (const Schedule& schedule : sample(moved_transfers(), 2000)) {
    if (receives_late(as_pytorch_has_it(schedule))) continue;
    ++of;
    late += receives_late(schedule) ? 1 : 0;
  }
  EXPECT_GT(late * 28, of);
  EXPECT_LT(late * 4, of);
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
