#include <capo/testing/generators/communication.h>

#include <capo/core/graph/lowered.h>
#include <capo/core/rules/check.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <optional>
#include <set>

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

TEST(SoundCommunication, ComesInEveryLayoutModeAndWayOfCalling) {
  std::set<std::optional<Communicators>> layouts;
  std::set<std::optional<TransferMode>> modes;
  std::set<std::optional<MegatronCalls>> calls;
  for (const Communication& one : sample(sound_communication(), 300)) {
    layouts.insert(one.environment.communicators);
    modes.insert(one.environment.transfers);
    calls.insert(one.environment.p2p);
    EXPECT_NE(has_transfers(one.schedule), one.environment.p2p.has_value());
  }
  EXPECT_EQ(layouts.size(), 4u);
  EXPECT_EQ(modes.size(), 3u);
  EXPECT_EQ(calls.size(), 4u);
}

}  // namespace
}  // namespace capo::testing
