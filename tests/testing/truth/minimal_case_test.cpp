// A wrong verdict, planted, is found by the campaign and comes out small, to paste.
//
// The judge is a real one whose verdict is spoilt in one way, as a rule that is wrong would: then
// what was to be minimised is a real order, run on a real engine.

#include "testing/truth/minimal_case.h"

#include "core/base/assert.h"
#include "run/host/host_engine.h"
#include "testing/truth/campaign.h"
#include "testing/truth/cases.h"
#include "testing/truth/judge.h"
#include "testing/truth/paste.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

TruthLine judged(const TruthCase& of) {
  run::host::HostEngine engine;
  return judge_truth(of, engine).value();
}

// This judge acts as if B02, the overwritten grad output, did not exist.
TruthLine blind_to_b02(const TruthCase& of) {
  TruthLine line = judged(of);
  if (line.rules != std::vector<std::string>{"B02"}) return line;
  line.rules.clear();
  line.verdict = "accepted";
  line.came = Came::Disagrees;
  line.reason = "accepted, but a gradient is not equal to eager's";
  return line;
}

// This judge acts as if every order of two chunks were wrong.
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

std::size_t microbatches_of(const TruthCase& of) {
  std::set<std::int32_t> microbatches;
  for (const RankOrder& rank : of.input.schedule.ranks) {
    for (const Entry& entry : rank.order) microbatches.insert(entry.microbatch);
  }
  return microbatches.size();
}

// The first case of its sort behind the fixed ones.
TruthCase first_case(const std::function<bool(const TruthCase&)>& is_meant) {
  for (std::uint64_t number = 30'000;; ++number) {
    TruthCase of = truth_case(1, number);
    if (is_meant(of)) return of;
  }
}

// This judge acts as if P02 rejected every order of two microbatches; S06 rejects one microbatch
// alone, rightly.
Result<TruthLine, Error> alarmed_by_two_microbatches(const TruthCase& of) {
  TruthLine line = judged(of);
  line.ran = false;
  line.verdict = "rejected";
  line.rules = {microbatches_of(of) > 1 ? "P02" : "S06"};
  line.came = Came::Disagrees;
  line.reason = "rejected, though it was made to be sound";
  return line;
}

TEST(MinimalCase, BreaksNoOtherRuleThanTheCaseDid) {
  const TruthCase of = first_case([](const TruthCase& made) {
    return made.made == Made::Sound && made.declared.plan.kind == PlanKind::Safe &&
           microbatches_of(made) > 2;
  });
  const MinimalCase least =
      minimal_case(of, *alarmed_by_two_microbatches(of), alarmed_by_two_microbatches);
  EXPECT_EQ(least.line.rules, std::vector<std::string>{"P02"});
  EXPECT_EQ(microbatches_of(least.of), 2U) << least.of.words;
}

TEST(MinimalCase, MayBreakFewerRulesButStillTheFirst) {
  const auto judge = [](const TruthCase& of) -> Result<TruthLine, Error> {
    TruthLine line = judged(of);
    line.ran = true;
    line.rules = {"B02"};
    if (microbatches_of(of) > 1) line.rules = {"B01", "B02"};
    if (microbatches_of(of) > 2) line.rules = {"B01", "B02", "E01"};
    line.came = Came::Disagrees;
    line.reason = "rejected, but every gradient is right";
    return line;
  };
  const TruthCase of = first_case([](const TruthCase& made) { return microbatches_of(made) > 3; });
  const MinimalCase least = minimal_case(of, *judge(of), judge);
  EXPECT_EQ(least.line.rules, (std::vector<std::string>{"B01", "B02"}));
  EXPECT_EQ(microbatches_of(least.of), 2U) << least.of.words;
}

// Nobody vouches for other modules, nor for fewer ranks and chunks where these are declared.
TEST(MinimalCase, OfAFalseAlarmIsOneThatItsGeneratorVouchesFor) {
  std::size_t of_several_modules = 0;
  for (std::uint64_t number = 30'000; number < 30'100; number += 2) {
    const TruthCase of = truth_case(1, number);
    if (of.declared.plan.kind != PlanKind::Te || microbatches_of(of) < 2) continue;
    const MinimalCase least =
        minimal_case(of, *alarmed_by_two_microbatches(of), alarmed_by_two_microbatches);
    EXPECT_EQ(microbatches_of(least.of), 2U) << least.of.words;
    EXPECT_EQ(least.of.declared.modules, of.declared.modules);
    ASSERT_EQ(least.of.input.schedule.ranks.size(), of.input.schedule.ranks.size());
    for (std::size_t r = 0; r < of.input.schedule.ranks.size(); ++r) {
      EXPECT_EQ(least.of.input.schedule.ranks[r].chunks, of.input.schedule.ranks[r].chunks);
    }
    EXPECT_EQ(least.of.replays, 1U);
    EXPECT_EQ(judged(least.of).came, Came::Right) << to_text(judged(least.of));
    if (of.declared.modules.list.size() > 1) ++of_several_modules;
  }
  EXPECT_GT(of_several_modules, 0U);
}

// This judge acts as if an invariant of capo's own broke wherever a chunk delays its weight
// gradient.
Result<TruthLine, Error> broken_by_weights(const TruthCase& of) {
  TruthLine line{.number = of.number, .order = of.words, .verdict = "no-verdict"};
  for (const RankOrder& rank : of.input.schedule.ranks) {
    for (const Entry& entry : rank.order) {
      if (entry.kind == Kind::BackwardWeight) line.reason = "capo's own invariant does not hold";
    }
  }
  if (line.reason.empty()) line.came = Came::Right;
  return line;
}

TEST(MinimalCase, OfAnInvariantThatBreaksIsTheSmallestOrderAtWhichItDoes) {
  for (const Made made : {Made::Sound, Made::Faulty}) {
    const TruthCase of = first_case([&](const TruthCase& drawn) {
      return drawn.made == made && broken_by_weights(drawn)->came == Came::Disagrees;
    });
    const MinimalCase least = minimal_case(of, *broken_by_weights(of), broken_by_weights);
    EXPECT_EQ(least.line.reason, "capo's own invariant does not hold");
    EXPECT_LE(entries_of(least.of), 3U) << least.of.words;
    EXPECT_LT(entries_of(least.of), entries_of(of));
  }
}

TEST(MinimalCase, EndsWhereAnInvariantBreaksOnTheWay) {
  const TruthCase of = first_case([](const TruthCase& made) { return microbatches_of(made) > 3; });
  std::size_t asked = 0;
  const auto judge = [&](const TruthCase& smaller) -> Result<TruthLine, Error> {
    if (++asked == 4) throw InternalError("capo's own invariant does not hold");
    TruthLine line = judged(smaller);
    line.ran = true;
    line.rules.clear();
    line.came = Came::Disagrees;
    line.reason = "accepted, but there are victims";
    return line;
  };
  const MinimalCase least = minimal_case(of, *judge(of), judge);
  EXPECT_EQ(asked, 4U);
  EXPECT_LT(entries_of(least.of), entries_of(of));
  EXPECT_EQ(least.line.reason, "accepted, but there are victims");
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
