#include "testing/generators/communication.h"

#include "core/graph/lowered.h"
#include "core/rules/check.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace capo::testing {
namespace {

TEST(SoundCommunication, IsAcceptedAndFinishes) {
  for (const Communication& one : sample(sound_communication(), 300)) {
    const CheckResult result = check({.form = Form::OrderFile, .schedule = one.schedule},
                                     {.environment = one.environment});
    EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(one);
    EXPECT_EQ(result.finishes, true) << rc::toString(one);
  }
}

TEST(SoundCommunication, StaysSoundAsItShrinks) {
  for (const auto& one : sample_shrinkables(sound_communication(), 50)) {
    for (const Communication& smaller : shrink_path(one)) {
      const CheckResult result = check({.form = Form::OrderFile, .schedule = smaller.schedule},
                                       {.environment = smaller.environment});
      EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(smaller);
      EXPECT_EQ(result.finishes, true) << rc::toString(smaller);
    }
  }
}

TEST(SoundCommunication, WritesItsTransfersInOneOfTwoAndElseNone) {
  const auto all = sample(sound_communication(), 300);
  for (const Communication& one : all)
    EXPECT_NE(has_transfers(one.schedule), one.environment.p2p.has_value());
  EXPECT_TRUE(is_share(count_of(all, [](const auto& one) { return has_transfers(one.schedule); }),
                       all.size(), 1.0 / 2));
}

TEST(SoundCommunication, DeclaresLayoutAndSendsEachByItself) {
  std::vector<Communicators> layouts;
  std::vector<TransferMode> modes;
  std::vector<std::size_t> ranks;
  std::vector<int> declared;  // 1: the layout, 2: the kind of send
  for (const Communication& one : sample(sound_communication(), 3000)) {
    if (one.environment.p2p) continue;
    const auto& [layout, mode] =
        std::pair(one.environment.communicators, one.environment.transfers);
    declared.push_back((layout ? 1 : 0) + (mode ? 2 : 0));
    if (layout) layouts.push_back(*layout);
    if (mode) modes.push_back(*mode);
    ranks.push_back(one.schedule.ranks.size());
  }
  EXPECT_TRUE(are_even(declared, {0, 1, 2, 3}));
  EXPECT_TRUE(
      are_even(layouts, {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}));
  EXPECT_TRUE(are_even(modes, {TransferMode::Rendezvous, TransferMode::Buffered}));
  EXPECT_TRUE(are_even(ranks, numbers<std::size_t>(2, 4)));
}

// More than one chunk comes with virtual stages only.
TEST(SoundCommunication, IsCalledInEveryWayThatApplies) {
  std::vector<MegatronCalls> of_two;
  std::vector<MegatronCalls> of_more;
  std::vector<bool> overlap;
  for (const Communication& one : sample(sound_communication(), 5000)) {
    const Environment& environment = one.environment;
    if (!environment.p2p) continue;
    EXPECT_EQ(environment.communicators.has_value(), environment.p2p == MegatronCalls::Flush);
    if (one.schedule.ranks.front().chunks < 2) continue;
    (one.schedule.ranks.size() > 2 ? of_more : of_two).push_back(*environment.p2p);
    overlap.push_back(environment.ep_overlap);
  }
  EXPECT_TRUE(are_even(of_two, {MegatronCalls::Overlap, MegatronCalls::Flush}));
  EXPECT_TRUE(
      are_even(of_more, {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}));
  EXPECT_TRUE(is_share(count_of(overlap, [](bool on) { return on; }), overlap.size(), 1.0 / 3));
}

}  // namespace
}  // namespace capo::testing
