// A wrong verdict, planted, is found by the campaign and comes out small, to paste.
//
// The judge is a real one whose verdict is spoilt in one way, as a rule that is wrong would: then
// what was to be minimised is a real order, run on a real engine.

#include <capo/testing/truth/minimal_case.h>

#include <capo/run/host/host_engine.h>
#include <capo/testing/truth/campaign.h>
#include <capo/testing/truth/cases.h>
#include <capo/testing/truth/judge.h>
#include <capo/testing/truth/paste.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace capo::testing {
namespace {

TruthLine judged(const TruthCase& of) {
  run::host::HostEngine engine;
  return judge_truth(of, engine).value();
}

// As if B02, the grad output that is overwritten, did not exist.
TruthLine blind_to_b02(const TruthCase& of) {
  TruthLine line = judged(of);
  if (line.rules != std::vector<std::string>{"B02"}) return line;
  line.rules.clear();
  line.verdict = "accepted";
  line.came = Came::Disagrees;
  line.reason = "accepted, but a gradient is not equal to eager's";
  return line;
}

// As if every order of two chunks were wrong.
TruthLine alarmed_by_two_chunks(const TruthCase& of) {
  TruthLine line = judged(of);
  if (of.input.schedule.ranks.front().chunks < 2) return line;
  line.verdict = "rejected";
  line.ran = false;
  line.came = Came::Disagrees;
  line.reason = "rejected, though it was made to be sound";
  return line;
}

MinimalCase first_disagreement(const JudgeCase& judge) {
  Campaign campaign{.orders = 200, .jobs = 2};
  campaign.make = [](std::uint64_t number) { return truth_case(1, 30'000 + number); };
  // The campaign knows orders by their numbers in it.
  campaign.judge = [&](const TruthCase& of) {
    TruthLine line = judge(of).value();
    line.number -= 30'000;
    return line;
  };
  const auto result = run_campaign(campaign);
  EXPECT_TRUE(result && result->disagreement);
  const TruthCase of = campaign.make(result->disagreement->number);
  return minimal_case(of, judge(of).value(), judge);
}

std::size_t entries_of(const TruthCase& of) {
  std::size_t entries = 0;
  for (const RankOrder& rank : of.input.schedule.ranks) entries += rank.order.size();
  return entries;
}

TEST(MinimalCase, OfAMissedHazardIsTheSmallestOrderThatHasIt) {
  const MinimalCase least = first_disagreement(blind_to_b02);
  EXPECT_EQ(least.line.came, Came::Disagrees);
  EXPECT_EQ(judged(least.of).rules, std::vector<std::string>{"B02"});
  EXPECT_EQ(entries_of(least.of), 5U) << least.of.words;  // F F B B W, whichever chunks
  EXPECT_EQ(least.of.replays, 1U);
  EXPECT_EQ(least.of.graphs, Granularity::PerAction);
  const std::string paste = paste_text(least.of, "host");
  EXPECT_NE(paste.find(R"("plan":"te")"), std::string::npos) << paste;
  EXPECT_NE(paste.find("--unchecked"), std::string::npos) << paste;
}

TEST(MinimalCase, OfAFalseAlarmStaysSound) {
  const MinimalCase least = first_disagreement(alarmed_by_two_chunks);
  EXPECT_EQ(judged(least.of).came, Came::Right) << to_text(judged(least.of));
  EXPECT_LE(entries_of(least.of), 6U) << least.of.words;
  EXPECT_EQ(paste_text(least.of, "host").find("--unchecked"), std::string::npos);
}

TEST(MinimalCase, OfWhatWasNotRunIsTheCaseItself) {
  const auto refuse = [](const TruthCase& of) {
    return TruthLine{.number = of.number, .came = Came::Disagrees, .reason = "no device"};
  };
  const TruthCase of = truth_case(1, 30'000);
  const MinimalCase same = minimal_case(of, refuse(of), refuse);
  EXPECT_EQ(paste_text(same.of, "host"), paste_text(of, "host"));
}

}  // namespace
}  // namespace capo::testing
