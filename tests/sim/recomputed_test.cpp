#include "sim/memory.h"
#include "sim/report.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using simulated::costs;
using simulated::simulate_text;

SimulationOptions recomputing(const std::string& chunks, Costs of, const std::string& memory) {
  SimulationOptions options{.costs = std::move(of), .memory = *read_memory(memory)};
  options.costs.recomputed = *read_recomputed(chunks);
  return options;
}

TEST(Recomputed, AWholeBackwardRunsTheForwardFirst) {
  const auto s = simulate_text("[1, 1, -1, -1]",
                               recomputing("all", costs("f=2,b=3,w=1"), "f=1,b=0,w=-1,keep=0.25"));
  EXPECT_EQ((*s)->makespan(), 2 + 2 + 2 * (2 + 3 + 1));
  const auto course = (*s)->memory_course(0);
  ASSERT_EQ(course.size(), 6U);
  const double held[]{0.25, 0.5, 1.25, 0.25, 1, 0};
  const double times[]{0, 2, 4, 10, 10, 16};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(course[i].held, held[i]) << i;
    EXPECT_EQ(course[i].time, times[i]) << i;
  }
  EXPECT_EQ(course[1].microbatches, 2) << "though a part of each is kept";
  EXPECT_EQ((*s)->peaks()[0].held, 1.25);
  EXPECT_EQ((*s)->peaks()[0].time, 4);
}

TEST(Recomputed, AnInputHalfHoldsAllUntilItEnds) {
  const char* memory = "f=1,b=-0.5,w=-0.5";
  const auto apart = simulate_text("[1, 1, -1, -1.5, -1, -1.5]",
                                   recomputing("r0c1", costs("f=2,b=3,w=1"), memory));
  EXPECT_EQ((*apart)->makespan(), 2 + 2 + 2 * (2 + 3 + 1));
  EXPECT_EQ((*apart)->peaks()[0].held, 1) << "nothing is kept of the other one";
  const auto late = simulate_text("[1, 1, -1, -1, -1.5, -1.5]",
                                  recomputing("r0c1", costs("f=2,b=3,w=1"), memory));
  EXPECT_EQ((*late)->peaks()[0].held, 1.5) << "half of the first waits for its weight gradient";
  EXPECT_EQ((*late)->peaks()[0].time, 9);
}

TEST(Recomputed, OnlyTheChunksThatAreNamed) {
  const auto s =
      simulated::simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 3},
                                recomputing("r0", costs("f=2,b=1,w=1,re=1"), "f=1,b=0,w=-1"));
  // Rank 0: F F _ B F B B, whose backwards take 3; rank 1: F B F B F B, whose backwards take 2.
  EXPECT_EQ((*s)->peaks()[0].held, 1) << "of the microbatch that runs back";
  EXPECT_EQ((*s)->peaks()[1].held, 1);
  EXPECT_EQ((*s)->ranks()[0].busy, 3 * (2 + 3));
  EXPECT_EQ((*s)->ranks()[1].busy, 3 * (2 + 2));
  // The last microbatch begins behind the first backward, 6 to 9, runs on rank 1 until 15 and back.
  EXPECT_EQ((*s)->makespan(), 9 + 2 + 2 + 2 + 3);
}

TEST(Recomputed, TheCostOfTheForwardUnlessItIsSaid) {
  const auto again = [](const std::string& settings, const std::string& scoped) {
    Costs all = costs(settings, scoped);
    all.recomputed = *read_recomputed("r1c2");
    EXPECT_EQ(all.of_chunk(0, 2, 1).backward, 3) << "it is not recomputed";
    EXPECT_EQ(all.of_chunk(1, 1, 1).backward, 3);
    return all.of_chunk(1, 2, 1).backward - 3;
  };
  EXPECT_EQ(again("f=4,b=3", "r1.c2:f=5"), 5);
  EXPECT_EQ(again("f=4,b=3,re=2", "r1.c2:f=5"), 2) << "said of all";
  EXPECT_EQ(again("f=4,b=3,re=2", "c2:re=1"), 1);
  EXPECT_EQ(again("f=4,b=3,dispatch=0.5,combine=0.25", "re=0"), 0.75) << "exchanges run again";
}

TEST(Recomputed, OfAModelTheForwardOfEachLayer) {
  Model model;
  model.modules.list = {{.name = "m", .cost = {.forward = 2, .backward = 3, .weight = 1}},
                        {.name = "n", .cost = {.forward = 5, .backward = 7, .weight = 1}}};
  model.modules.layers = {{{0, 1}}};
  Costs all = *costs_of(model);
  all.recomputed = *read_recomputed("all");
  EXPECT_EQ(all.of_chunk(0, 1, 2).backward, 3 + 7 + 2 + 5);
}

TEST(Recomputed, ABoundOfARankKnowsItsWork) {
  const auto bound = [](const std::string& chunks) {
    SimulationOptions options;
    options.costs = costs("f=2,b=3,w=1");
    if (!chunks.empty()) options.costs.recomputed = *read_recomputed(chunks);
    const auto s =
        simulated::simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 4}, options);
    return (*s)->bounds().makespan;
  };
  EXPECT_EQ(bound("r1").value, 2 + 4 * (2 + 3 + 1 + 2));
  EXPECT_EQ(bound("r1").by, "work");
  EXPECT_EQ(bound("r1").rank, 1);
  EXPECT_NE(bound("").by, "work") << "closed forms are of equal chunks that hold all";
}

TEST(Recomputed, TextNamesChunks) {
  for (const char* text : {"all", "r0c1,r2c2", "r0", "c2", "r0,c2,r10c12"}) {
    EXPECT_EQ(to_text(*read_recomputed(text)), text);
  }
  EXPECT_EQ(to_text({}), "");
  for (const char* text : {"", "r", "c0", "r0c", "c1r0", "r0c1,", "r-1", "0", "all,r0", "r0 "}) {
    EXPECT_FALSE(read_recomputed(text).has_value()) << text;
  }
  EXPECT_EQ(read_recomputed("r0,x1").error(),
            "`x1` names no chunks; write all, or a list such as r0c1,r2,c2 of chunks from 1 on "
            "ranks from 0, of ranks and of chunks on every rank");
  EXPECT_EQ(read_memory("f=1,b=0,w=-1,keep=1.5").error(), "keep=1.5 is no share of f, from 0 to 1");
}

TEST(Recomputed, RefusesOtherChunksAndModulesThatRecomputeAlready) {
  const auto schedule = schedules::schedule_named({.name = "1f1b", .ranks = 2, .microbatches = 2});
  const auto why = [&](const char* chunks, const ModuleTable& modules) {
    return misfit_of(*read_recomputed(chunks), *schedule, modules).value_or("");
  };
  EXPECT_EQ(why("r1c1", {}), "");
  EXPECT_EQ(why("r2", {}), "speaks of rank 2, but there are 2");
  EXPECT_EQ(why("c2", {}), "speaks of chunk 2, but no rank has more than 1");
  const ModuleTable modules{.list = {{.name = "m", .remakes = true}, {.name = "n"}},
                            .layers = {{{0}}, {{1}}}};
  EXPECT_EQ(why("r1", modules), "");
  EXPECT_EQ(why("all", modules),
            "names chunk 1 of rank 0, but the configuration of its module `m` says `recompute`: "
            "its backward has the forward already");
}

TEST(Recomputed, NotOfChunksThatAreTakenApart) {
  SimulationOptions options = recomputing("all", {}, "f=1,b=0,w=-1");
  options.check.environment.ep_overlap = true;
  EXPECT_EQ(simulate_text("[1, 1, -1, -1]", options)->why,
            "chunks that recompute are not taken apart into layers and exchanges");
}

TEST(Recomputed, ReportsNameTheChunks) {
  const auto s = simulate_text("[1, 1, -1, -1]",
                               recomputing("r0", costs("f=2,b=3,w=1"), "f=1,b=0,w=-1,keep=0.25"));
  EXPECT_NE(text_report(**s).find("of a microbatch\nrecomputed: r0, keeping 0.25 of f\n\n"),
            std::string::npos);
  EXPECT_NE(json_report(**s, {}).find("\"recomputed\": \"r0\""), std::string::npos);
}

}  // namespace
}  // namespace capo
