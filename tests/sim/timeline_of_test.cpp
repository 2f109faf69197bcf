#include "core/timeline/timeline.h"
#include "sim/simulation.h"
#include "tests/sim/simulated.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using simulated::costs;
using simulated::over;
using simulated::simulate_text;

constexpr const char* kTwoRanks =
    "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";

// Tasks are numbered rank by rank, F1.0 F1.1 B1.0 B1.1 each.
TEST(Causes, AreWhatATaskWaitsForOnAnotherLane) {
  const std::string first =
      "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: ";
  const std::vector<Waiting> waits{
      {.task = 2, .on = 6}, {.task = 3, .on = 7}, {.task = 4, .on = 0}, {.task = 5, .on = 1}};
  for (const char* second : {"F1.0 F1.1 B1.0 B1.1", "F1.0 (F1.1 B1.0) B1.1"}) {
    const auto s = simulate_text(first + second + "\n");
    Timeline timeline = timeline_of(**s);
    add_causes(**s, timeline);
    EXPECT_EQ(timeline.waits, waits) << second;
  }
}

TEST(TextGrid, TimeGoesToTheRight) {
  const auto s = simulate_text(kTwoRanks, {.costs = costs("f=3,b=3,w=0,comm=1")});
  // 3, 1 on the way, 3 and 3, 1 on the way, 3: 14 in 28 characters.
  EXPECT_EQ(text_grid(timeline_of(**s), {.width = 8 + 28 + 1}),
            "rank 0 |F0----................B0----|\n"
            "rank 1 |........F0----B0----........|\n"
            "one character is 0.5\n");
}

TEST(TextGrid, ATaskOfOneCharacterIsItsKind) {
  const auto s = simulate_text("[1, -1, -1.5]");
  EXPECT_EQ(text_grid(timeline_of(**s), {.width = 8 + 3 + 1}),
            "rank 0 |fbw|\none character is 1\n");
}

TEST(TextGrid, ChunksAreNamedWhereARankHoldsSeveral) {
  const auto s = simulate_text("[1, 2, -2, -1]", {.costs = costs("f=4,b=4,w=0")});
  EXPECT_EQ(text_grid(timeline_of(**s), {.width = 8 + 16 + 1}),
            "rank 0 |F1.0F2.0B2.0B1.0|\none character is 1\n");
}

TEST(ChromeTrace, HasAnEventForEachTaskOnItsStream) {
  const auto s = simulate_text(kTwoRanks, over(Links::Rendezvous, costs("comm=1")));
  const auto trace = nlohmann::json::parse(chrome_trace(timeline_of(**s)));
  std::size_t tasks = 0;
  std::size_t counters = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++tasks;
    if (event["ph"] == "C") ++counters;
    if (event["ph"] == "X" && event["name"] == "send-F1.0") {
      EXPECT_EQ(event["ts"], 1);
      EXPECT_EQ(event["dur"], 1);
      EXPECT_EQ(event["cat"], "communication");
    }
  }
  EXPECT_EQ(tasks, (*s)->graph().tasks.size());
  EXPECT_EQ(counters, 4U);
}

TEST(ChromeTrace, ACompositeIsOneEvent) {
  const auto s = simulate_text("capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n");
  const std::string trace = chrome_trace(timeline_of(**s));
  EXPECT_NE(trace.find("\"F1.1&B1.0\""), std::string::npos);
}

// Costs of every layer of one module.
Costs of_module(ModuleCost cost) {
  Costs costs;
  costs.modules = {.list = {{.name = "mlp", .cost = cost}}, .layers = {{{0}}}};
  return costs;
}

constexpr ModuleCost kQuantizing{.forward = 4,
                                 .backward = 6,
                                 .weight = 5,
                                 .whole = 10,
                                 .quantize_forward = 1,
                                 .quantize_backward = 2};

std::vector<double> quantizing(const Simulation& simulation) {
  std::vector<double> all;
  for (const TimedTask& task : timeline_of(simulation).tasks) all.push_back(task.quantizing);
  return all;
}

TEST(Quantization, IsAPartOfForwardsAndOfBackwards) {
  const auto s = simulate_text("[1, -1, -1.5]", {.costs = of_module(kQuantizing)});
  EXPECT_EQ(quantizing(**s), (std::vector<double>{1, 2, 0}));
  EXPECT_EQ((*s)->makespan(), 15) << "what it was without";
  EXPECT_EQ((*s)->quantizing_of(0), 3);
  const auto whole = simulate_text("[1, -1]", {.costs = of_module(kQuantizing)});
  EXPECT_EQ(quantizing(**whole), (std::vector<double>{1, 2}));
  EXPECT_EQ((*whole)->makespan(), 14);
}

TEST(Quantization, IsOfNoTaskWhereNobodyTellsIt) {
  const auto s = simulate_text("[1, -1, -1.5]");
  EXPECT_EQ(quantizing(**s), (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE((*s)->tells_quantization());
}

// F1.1 and B1.0 run together, in half of what they take one after the other.
TEST(Quantization, ShrinksWithTheCompositeThatItIsIn) {
  Costs costs = of_module(kQuantizing);
  costs.overlap = 0.5;
  const auto s = simulate_text("capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n", {.costs = costs});
  EXPECT_EQ(quantizing(**s), (std::vector<double>{1, 0.5, 1, 2}));
  const std::string trace = chrome_trace(timeline_of(**s));
  EXPECT_NE(trace.find(R"("name":"quantize F1.1&B1.0","cat":"quantization","ph":"X","ts":4.0,)"
                       R"("dur":1.5,)"),
            std::string::npos)
      << trace;
}

}  // namespace
}  // namespace capo
