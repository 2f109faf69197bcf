// The executor itself, on orders whose end one can see.

#include "testing/oracle/transfers.h"

#include <gtest/gtest.h>

#include <locale>
#include <sstream>
#include <string>
#include <vector>

namespace capo::oracle {
namespace {

// "F0.1": kind, stage, microbatch. Kinds are F, B, W, sF, rF, sB, rB, and wF, which waits for sF;
// `+` joins an operation to the one before, `!` and `!!` behind it make later computations wait for
// it, `'` is communicator 1.
Operation operation(std::string word) {
  Operation made;
  const auto take = [&](const std::string& prefix) {
    if (!word.starts_with(prefix)) return false;
    word.erase(0, prefix.size());
    return true;
  };
  made.joined = take("+");
  if (take("sF")) {
    made.kind = Operation::SendForward;
  } else if (take("rF")) {
    made.kind = Operation::ReceiveForward;
  } else if (take("wF")) {
    made.kind = Operation::WaitSendForward;
  } else if (take("sB")) {
    made.kind = Operation::SendBackward;
  } else if (take("rB")) {
    made.kind = Operation::ReceiveBackward;
  } else if (take("F")) {
    made.kind = Operation::Forward;
  } else if (take("B")) {
    made.kind = Operation::Backward;
  } else if (take("W")) {
    made.kind = Operation::Weight;
  }
  char point = 0;
  std::string rest;
  std::istringstream text(word);
  text.imbue(std::locale::classic());  // a point is no separator, whatever the locale
  text >> made.stage >> point >> made.microbatch >> rest;
  if (rest.find("!!") != std::string::npos) {
    made.holds = Operation::MuchLater;
  } else if (rest.find('!') != std::string::npos) {
    made.holds = Operation::Later;
  }
  made.communicator = rest.find('\'') != std::string::npos ? 1 : 0;
  return made;
}

Pipeline pipeline(std::vector<int> home, const std::vector<std::string>& ranks,
                  Lines lines = Lines::All, bool buffered = false) {
  Pipeline made{.home = std::move(home), .lines = lines, .held = buffered ? kHoldsAll : 0};
  for (const std::string& rank : ranks) {
    auto& operations = made.ranks.emplace_back();
    std::istringstream words(rank);
    for (std::string word; words >> word;) operations.push_back(operation(word));
  }
  return made;
}

bool two_ranks_finish(const std::string& first, const std::string& second, Lines lines = Lines::All,
                      bool buffered = false) {
  return finishes(pipeline({0, 1}, {first, second}, lines, buffered));
}

TEST(OracleTransfers, OneRankRunsItsOrder) {
  EXPECT_TRUE(finishes(pipeline({0}, {"F0.0 B0.0 W0.0"})));
  EXPECT_FALSE(finishes(pipeline({0}, {"B0.0 F0.0"})));
  EXPECT_FALSE(finishes(pipeline({0}, {"F0.0 W0.0 B0.0"})));
  EXPECT_TRUE(finishes(pipeline({0, 0}, {"F0.0 F1.0 B1.0 B0.0"})));
  EXPECT_FALSE(finishes(pipeline({0, 0}, {"F1.0 F0.0 B1.0 B0.0"})));
}

TEST(OracleTransfers, WhatAnotherRankMakesHasToArrive) {
  EXPECT_TRUE(two_ranks_finish("F0.0 sF0.0 rB0.0 B0.0", "rF1.0 F1.0 B1.0 sB1.0"));
  EXPECT_FALSE(two_ranks_finish("F0.0 rB0.0 B0.0", "F1.0 B1.0 sB1.0")) << "nothing sent";
  EXPECT_FALSE(two_ranks_finish("F0.0 sF0.0 rB0.0 B0.0", "F1.0 rF1.0 B1.0 sB1.0")) << "too late";
  EXPECT_FALSE(two_ranks_finish("sF0.0 F0.0 rB0.0 B0.0", "rF1.0 F1.0 B1.0 sB1.0")) << "too early";
}

TEST(OracleTransfers, AReceiveWithoutASendNeverEndsAndASendOnlyIfItIsBuffered) {
  const std::string sends = "F0.0 sF0.0 sF0.0 rB0.0 B0.0";
  const std::string receives = "rF1.0 F1.0 B1.0 sB1.0 rF1.0";
  const std::string first = "F0.0 sF0.0 rB0.0 B0.0";
  const std::string last = "rF1.0 F1.0 B1.0 sB1.0";
  EXPECT_FALSE(two_ranks_finish(sends, last));
  EXPECT_TRUE(two_ranks_finish(sends, last, Lines::All, true));
  EXPECT_FALSE(two_ranks_finish(first, receives));
  EXPECT_FALSE(two_ranks_finish(first, receives, Lines::All, true));
  EXPECT_TRUE(two_ranks_finish(sends, receives, Lines::OfThePairAndDirection)) << "they meet";
}

// Each sends before it receives: fine where sends are buffered or each direction has its line.
TEST(OracleTransfers, TwoThatSendFirst) {
  const std::string first = "F0.0 sF0.0 F0.1 sF0.1 rB0.0 B0.0 rB0.1 B0.1";
  const std::string last = "rF1.0 F1.0 B1.0 sB1.0 rF1.1 F1.1 B1.1 sB1.1";
  EXPECT_FALSE(two_ranks_finish(first, last, Lines::All));
  EXPECT_FALSE(two_ranks_finish(first, last, Lines::OfThePair));
  EXPECT_TRUE(two_ranks_finish(first, last, Lines::OfThePairAndDirection));
  EXPECT_TRUE(two_ranks_finish(first, last, Lines::All, true));
}

TEST(OracleTransfers, TwoThatReceiveFirst) {
  const std::string first = "F0.0 sF0.0 F0.1 rB0.0 B0.0 sF0.1 rB0.1 B0.1";
  const std::string last = "rF1.0 F1.0 rF1.1 F1.1 B1.0 sB1.0 B1.1 sB1.1";
  for (const Lines lines : {Lines::All, Lines::OfThePair, Lines::OfThePairAndDirection}) {
    EXPECT_FALSE(two_ranks_finish(first, last, lines));
    EXPECT_FALSE(two_ranks_finish(first, last, lines, true));
  }
}

TEST(OracleTransfers, JoinedTransfersBeginAndEndTogether) {
  const std::string last = "rF1.0 F1.0 B1.0 sB1.0 rF1.1 F1.1 B1.1 sB1.1";
  EXPECT_TRUE(two_ranks_finish("F0.0 sF0.0 F0.1 sF0.1 +rB0.0 B0.0 rB0.1 B0.1", last));
  // Joined to a receive that comes later only, the send cannot end, and what follows waits for it.
  EXPECT_FALSE(two_ranks_finish("F0.0 sF0.0 +rB0.0 F0.1 sF0.1 B0.0 rB0.1 B0.1",
                                "rF1.0 F1.0 rF1.1 F1.1 B1.0 sB1.0 B1.1 sB1.1"));
}

TEST(OracleTransfers, JoinedComputationsNeedAllTheirInputsFirst) {
  EXPECT_TRUE(finishes(pipeline({0}, {"F0.0 F0.1 +B0.0 B0.1"})));
  EXPECT_FALSE(finishes(pipeline({0}, {"F0.0 +B0.0"}))) << "the one reads the other";
}

// Around three ranks: rank 0 wants something back before it sends again, and rank 1 waits for that
// before it sends on.
TEST(OracleTransfers, ALineForAllIsLongerThanOneForAPair) {
  const std::vector<std::string> ranks{"F0.0 sF0.0 F0.1 rF3.0 sF0.1 F3.0 rF3.1 F3.1",
                                       "rF1.0 F1.0 rF1.1 sF1.0 F1.1 sF1.1",
                                       "rF2.0 F2.0 sF2.0 rF2.1 F2.1 sF2.1"};
  EXPECT_FALSE(finishes(pipeline({0, 1, 2, 0}, ranks, Lines::All)));
  EXPECT_TRUE(finishes(pipeline({0, 1, 2, 0}, ranks, Lines::OfThePair)));
  EXPECT_TRUE(finishes(pipeline({0, 1, 2, 0}, ranks, Lines::OfThePairAndDirection)));
}

TEST(OracleTransfers, ComputationsWaitForWhatHoldsThem) {
  const std::string last = "rF1.0 F1.0 rF1.1 F1.1 B1.0 sB1.0 B1.1 sB1.1";
  EXPECT_TRUE(two_ranks_finish("F0.0 sF0.0 F0.1 sF0.1 rB0.0 B0.0 rB0.1 B0.1", last));
  // The first computation behind it needs what only the held one leads to.
  const std::string early = "F0.0 sF0.0 rB0.0! F0.1 sF0.1 B0.0 rB0.1 B0.1";
  EXPECT_FALSE(two_ranks_finish(early, last, Lines::OfThePairAndDirection));
  const std::string read = "F0.0 sF0.0 rB0.0 F0.1 sF0.1 B0.0 rB0.1 B0.1";
  EXPECT_TRUE(two_ranks_finish(read, last, Lines::OfThePairAndDirection)) << "its reader waits";
}

TEST(OracleTransfers, WhatHoldsMuchLaterHoldsBehindTheNextOfItsKind) {
  // Rank 1 wants microbatch 2 before it receives microbatch 0: from then on rank 0 waits for that.
  const std::string last = "rF1.2' F1.2 rF1.0 F1.0 rF1.1 F1.1";
  const auto ends = [&](const std::string& holds) {
    return two_ranks_finish("F0.0 sF0.0" + holds + " F0.1 sF0.1 F0.2 sF0.2'", last);
  };
  EXPECT_TRUE(ends(""));
  EXPECT_FALSE(ends("!"));
  EXPECT_FALSE(ends("!!"));
  EXPECT_TRUE(two_ranks_finish("F0.0 sF0.0!! F0.1 F0.2 sF0.2' sF0.1", last))
      << "the computations between need not wait";
  EXPECT_FALSE(two_ranks_finish("F0.0 sF0.0! F0.1 F0.2 sF0.2' sF0.1", last));
}

TEST(OracleTransfers, OtherCommunicatorsNeitherQueueNorMeet) {
  const std::string first = "F0.0 sF0.0 F0.1 sF0.1 rB0.0' B0.0 rB0.1' B0.1";
  const std::string last = "rF1.0 F1.0 B1.0 sB1.0' rF1.1 F1.1 B1.1 sB1.1'";
  EXPECT_TRUE(two_ranks_finish(first, last)) << "two senders that do not queue up";
  EXPECT_FALSE(two_ranks_finish("F0.0 sF0.0' rB0.0 B0.0", "rF1.0 F1.0 B1.0 sB1.0"));
}

TEST(OracleTransfers, NameThoseThatWaitForThemselves) {
  const std::string last = "rF1.0 F1.0 B1.0 sB1.0";
  const auto circles = [](const std::string& first, const std::string& second) {
    return in_circles(pipeline({0, 1}, {first, second}));
  };
  EXPECT_EQ(circles("F0.0 sF0.0 rB0.0 B0.0", last), std::vector<Place>());
  EXPECT_EQ(circles("F0.0 rB0.0 sF0.0 B0.0", last),
            (std::vector<Place>{{0, 1}, {0, 2}, {1, 0}, {1, 3}}));
  EXPECT_EQ(circles("F0.0 sF0.0 F0.1 rB0.0 B0.0 sF0.1 rB0.1 B0.1",
                    "rF1.0 rF1.1 F1.0 F1.1 B1.0 sB1.0 B1.1 sB1.1"),
            (std::vector<Place>{{0, 3}, {0, 5}, {1, 1}, {1, 5}}))
      << "the first send is over, and the last transfers wait for the circle alone";
}

TEST(OracleTransfers, AWaitForALaterSendIsACircleAndOneForNoSendIsNone) {
  const auto circles = [](const std::string& first) {
    return in_circles(pipeline({0, 1}, {first, "rF1.0 F1.0 B1.0 sB1.0"}));
  };
  EXPECT_EQ(circles("F0.0 wF0.0 sF0.0 rB0.0 B0.0"), (std::vector<Place>{{0, 1}, {0, 2}}));
  EXPECT_EQ(circles("F0.0 wF0.1 sF0.0 rB0.0 B0.0"), std::vector<Place>());
}

TEST(OracleTransfers, NameTheFirstComputationThatCannotRun) {
  const auto never = [](const std::string& first, const std::string& last) {
    return first_never_computed(pipeline({0, 1}, {first, last}));
  };
  EXPECT_FALSE(never("F0.0 rB0.0 sF0.0 B0.0", "rF1.0 F1.0 B1.0 sB1.0")) << "transfers aside";
  EXPECT_EQ(never("F0.0 sF0.0 rB0.0 B0.0 F0.1 sF0.1", "rF1.1 F1.1 rF1.0 F1.0 B1.0 sB1.0"),
            (Place{0, 3}))
      << "rank 1 wants microbatch 1 first";
  EXPECT_EQ(never("F0.0 sF0.0", "rF1.0 B1.0 F1.0"), (Place{1, 1}));
}

TEST(OracleTransfers, MixesUpWhatStandsInDifferentOrders) {
  const std::string first = "F0.0 sF0.0 F0.1 sF0.1 rB0.0 B0.0 rB0.1 B0.1";
  EXPECT_FALSE(mixes_up(pipeline({0, 1}, {first, "rF1.0 F1.0 rF1.1 F1.1 B1.0 sB1.0 B1.1 sB1.1"})));
  EXPECT_TRUE(mixes_up(pipeline({0, 1}, {first, "rF1.1 F1.1 rF1.0 F1.0 B1.0 sB1.0 B1.1 sB1.1"})));
  EXPECT_TRUE(mixes_up(pipeline({0, 1}, {first, "rF1.0 F1.0 rF1.1 F1.1 B1.1 sB1.1 B1.0 sB1.0"})));
}

TEST(OracleTransfers, MixesUpOnEachWayByItself) {
  // Messages of the two directions do not meet, nor do those of two communicators.
  EXPECT_FALSE(mixes_up(pipeline({0, 1}, {"F0.0 sF0.0 F0.1 rB0.0 B0.0 sF0.1 rB0.1 B0.1",
                                          "rF1.0 rF1.1 F1.0 F1.1 B1.0 sB1.0 B1.1 sB1.1"})));
  EXPECT_FALSE(mixes_up(pipeline({0, 1}, {"F0.0 sF0.0 F0.1 sF0.1'", "rF1.1' rF1.0 F1.0 F1.1"})));
}

// Rank 0 sends both activations first; rank 1 answers the first before it takes the second.
TEST(OracleTransfers, AChannelHoldsSoManyMessages) {
  const std::vector<std::string> ranks{"F0.0 F0.1 sF0.0 sF0.1 rB0.0 B0.0 rB0.1 B0.1",
                                       "rF1.0 F1.0 B1.0 sB1.0 rF1.1 F1.1 B1.1 sB1.1"};
  Pipeline made = pipeline({0, 1}, ranks);
  EXPECT_FALSE(finishes(made));
  made.held = 1;
  EXPECT_TRUE(finishes(made));
  // The fourth activation waits for the third receive, that for the second gradient's send, and
  // that for the first gradient's receive, which is behind the fourth activation.
  Pipeline longer = pipeline({0, 1}, {"F0.0 F0.1 F0.2 F0.3 sF0.0 sF0.1 sF0.2 sF0.3 "
                                      "rB0.0 B0.0 rB0.1 B0.1 rB0.2 B0.2 rB0.3 B0.3",
                                      "rF1.0 F1.0 B1.0 sB1.0 rF1.1 F1.1 B1.1 sB1.1 "
                                      "rF1.2 F1.2 B1.2 sB1.2 rF1.3 F1.3 B1.3 sB1.3"});
  longer.held = 1;
  EXPECT_FALSE(finishes(longer));
  longer.held = 2;
  EXPECT_TRUE(finishes(longer));
}

TEST(OracleTransfers, ActivationsAndGradientsMayHaveACommunicatorEach) {
  const std::vector<std::string> ranks{"F0.0 F0.1 sF0.0 sF0.1 rB0.0 B0.0 rB0.1 B0.1",
                                       "rF1.0 F1.0 B1.0 sB1.0 rF1.1 F1.1 B1.1 sB1.1"};
  EXPECT_FALSE(finishes(pipeline({0, 1}, ranks, Lines::OfThePair)));
  EXPECT_TRUE(finishes(pipeline({0, 1}, ranks, Lines::OfThePass)));
  // Where stages 0 and 3 are on rank 0, both passes go both ways, and a channel of a pass holds
  // nothing of the other.
  const Pipeline turned = pipeline({0, 1, 1, 0},
                                   {"F0.0 sF0.0 rF3.0 F3.0 B3.0 sB3.0 rB0.0 B0.0",
                                    "rF1.0 F1.0 F2.0 sF2.0 rB2.0 B2.0 B1.0 sB1.0"},
                                   Lines::OfThePass);
  EXPECT_TRUE(finishes(turned));
  EXPECT_FALSE(mixes_up(turned));
}

}  // namespace
}  // namespace capo::oracle
