#include "schedules/catalogue.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace capo::schedules {
namespace {

std::string tokens(const Request& request) {
  const auto schedule = schedule_named(request);
  return schedule ? *print_tokens(*schedule) : schedule.error();
}

TEST(Catalogue, NumbersInNamesAreWhatTheFlagsSay) {
  EXPECT_EQ(tokens({.name = "zb-2p", .ranks = 3, .microbatches = 6}),
            tokens({.name = "zb", .ranks = 3, .microbatches = 6, .memory_limit = 6.0}));
  EXPECT_EQ(tokens({.name = "zbv-1.5p", .ranks = 4, .microbatches = 8}),
            tokens({.name = "zbv", .ranks = 4, .microbatches = 8, .memory_limit = 6.0}));
  EXPECT_EQ(tokens({.name = "gis-g2", .ranks = 4, .microbatches = 8}),
            tokens({.name = "gis", .ranks = 4, .microbatches = 8, .group = 2}));
  EXPECT_EQ(tokens({.name = "1f1b-interleaved-v4", .ranks = 4, .microbatches = 8}),
            tokens({.name = "vpp", .ranks = 4, .microbatches = 8, .chunks = 4}));
}

TEST(Catalogue, AChunkThatAlwaysSplitsDelaysItsWeightGradient) {
  const auto h1 = schedule_named({.name = "zb-h1", .ranks = 2, .microbatches = 2});
  EXPECT_EQ(h1->ranks[0].delay->front(), Delay::Always);
  EXPECT_EQ(
      schedule_named({.name = "1f1b", .ranks = 2, .microbatches = 2})->ranks[0].delay->front(),
      Delay::Never);
  EXPECT_EQ(
      schedule_named({.name = "dualpipev", .ranks = 2, .microbatches = 4})->ranks[0].delay->front(),
      Delay::Mixed);
}

TEST(Catalogue, MicrobatchesOfTwoDirectionsAreHalved) {
  const auto dual = schedule_named({.name = "dualpipe", .ranks = 4, .microbatches = 16});
  EXPECT_EQ(dual->topology, Topology::Bidirectional);
  EXPECT_EQ(dual->microbatches, 8);
}

TEST(Catalogue, TwoSayingsOfOneThingAreRefused) {
  EXPECT_EQ(tokens({.name = "gis-g2", .ranks = 4, .microbatches = 8, .group = 2}),
            "gis-g2 states its group, and --group does too");
  EXPECT_EQ(tokens({.name = "zb-1p", .ranks = 4, .microbatches = 8, .memory_limit = 3.0}),
            "zb-1p states its memory, and --memory does too");
  EXPECT_EQ(tokens({.name = "1f1b-interleaved-v4", .ranks = 4, .microbatches = 8, .chunks = 2}),
            "1f1b-interleaved-v4 states its chunks, and --chunks does too");
  EXPECT_EQ(tokens({.name = "gis-g1.5", .ranks = 4, .microbatches = 8}),
            "gis-g1.5 has no whole number up to 4096 in its name");
  EXPECT_EQ(tokens({.name = "gis-g4097", .ranks = 4, .microbatches = 8}),
            "gis-g4097 has no whole number up to 4096 in its name");
}

TEST(Catalogue, HalvesOfPyTorchsTablesAreMergedWhereTheyMeet) {
  const Request request{.name = "torch:InterleavedZeroBubble", .ranks = 2, .microbatches = 4};
  Request merged = request;
  merged.merge_halves = true;
  EXPECT_NE(tokens(request).find("B0.1 W0.1"), std::string::npos);
  EXPECT_EQ(tokens(merged).find("B0.1 W0.1"), std::string::npos);
  EXPECT_NE(tokens(merged).find("BW0.1"), std::string::npos);
  EXPECT_EQ(tokens({.name = "1f1b", .merge_halves = true}),
            "--merge-halves is for PyTorch's tables, torch:CLASS");
}

TEST(Catalogue, PyTorchsTablesHaveNoGroupsAndNoMemory) {
  EXPECT_EQ(tokens({.name = "torch:GPipe", .ranks = 2, .microbatches = 2, .group = 2}),
            "PyTorch's tables know neither groups nor memory: --group has no use");
  EXPECT_EQ(tokens({.name = "torch:GPipe", .ranks = 2, .microbatches = 2, .memory_limit = 2.0}),
            "PyTorch's tables know neither groups nor memory: --memory has no use");
}

TEST(Catalogue, ASizeIsThatOfTheScheduleThatIsMade) {
  std::vector<Request> requests{
      {.name = "gis-g2"},           {.name = "1f1b-interleaved-v3"},
      {.name = "vpp", .chunks = 4}, {.name = "seq1f1b", .group = 3},
      {.name = "torch:GPipe"},      {.name = "torch:LoopedBFS", .chunks = 3},
      {.name = "torch:DualPipeV"}};
  for (const Entry& entry : entries()) {
    requests.push_back({.name = std::string(entry.name)});
    if (entry.uses == "costs, memory") requests.back().memory_limit = 4;
  }
  for (Request& request : requests) {
    request.ranks = 4;
    request.microbatches = 16;
    const auto schedule = schedule_named(request);
    const auto size = size_of(request);
    ASSERT_TRUE(schedule && size) << request.name;
    EXPECT_EQ(size->chunks, schedule->ranks.front().chunks) << request.name;
    EXPECT_EQ(size->microbatches, *schedule->microbatches) << request.name;
  }
}

TEST(Catalogue, ASizeOfWhatThereIsNotIsRefusedInTheSameWords) {
  for (const Request& request : std::vector<Request>{{.name = "zb-h3"},
                                                     {.name = "torch:Foo"},
                                                     {.name = "torch:GPipe", .group = 2},
                                                     {.name = "gis-g2", .group = 2},
                                                     {.name = "1f1b", .merge_halves = true}}) {
    EXPECT_EQ(size_of(request).error(), schedule_named(request).error());
  }
}

TEST(Catalogue, NamesThatNobodyHasAreNamed) {
  EXPECT_EQ(unknown_name("1f1"),
            "there is no schedule `1f1`; did you mean `1f1b`? `capo generate --list` lists them");
  EXPECT_EQ(unknown_name("zb-nanp"), schedule_named({.name = "zb-nanp"}).error());
  EXPECT_EQ(unknown_name("torch:Foo"), schedule_named({.name = "torch:Foo"}).error());
  for (const char* name : {"1f1b", "zb-2p", "vpp", "gis-g2", "gis-g1.5", "torch:GPipe"}) {
    EXPECT_EQ(unknown_name(name), std::nullopt) << name;
  }
}

TEST(Catalogue, EveryNameOfTheListCanBeMade) {
  for (const Entry& entry : entries()) {
    Request request{.name = std::string(entry.name), .ranks = 4, .microbatches = 16};
    if (entry.uses == "costs, memory") request.memory_limit = 4;
    EXPECT_TRUE(schedule_named(request).has_value()) << entry.name << ": " << tokens(request);
  }
}

}  // namespace
}  // namespace capo::schedules
