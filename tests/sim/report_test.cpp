#include "sim/report.h"
#include "tests/sim/simulated.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace capo {
namespace {

using simulated::costs;
using simulated::simulate_named;
using simulated::simulate_text;

TEST(SimulationReport, InWords) {
  const auto s = simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 2},
                                {.costs = costs("f=1,b=1,w=1,comm=0.5")});
  EXPECT_EQ(
      text_report(**s),
      R"(2 ranks, 2 microbatches, 8 tasks; links ideal: a message takes its time, occupies nobody and never queues
times in units of --cost, memory f=1,b=0,w=-1 of a microbatch

makespan  10  bubble  40.00 %  at least 8 (L1 at rank 0), 25.00 % above
span      10  bubble  40.00 %  at least 8 (L1 at rank 0), 25.00 % above

)" + text_report(**s).substr(text_report(**s).find("rank  busy")));
}

TEST(SimulationReport, JsonHasWhatTheTextHas) {
  const auto s = simulate_named({.name = "zb-h1", .ranks = 2, .microbatches = 4});
  const auto json = nlohmann::json::parse(json_report(**s, {}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["makespan"], (*s)->makespan());
  EXPECT_EQ(json["span"], (*s)->span());
  EXPECT_EQ(json["ranks"].size(), 2U);
  EXPECT_EQ(json["ranks"][0]["busy"], 12);
  EXPECT_EQ(json["ranks"][0]["peak_activations"], 2);
  EXPECT_TRUE(json["ranks"][0]["peak_bytes"].is_null());
  EXPECT_EQ(json["lower_bound"]["makespan"], (*s)->bounds().makespan.value);
  EXPECT_EQ(json["idle_total"], json["idle"].size());
  EXPECT_EQ(json["critical_path"].front()["task"], "F1.0");
  EXPECT_EQ(json["critical_path"].back()["end"], json["makespan"]);
}

Costs with_quantization() {
  Costs costs;
  costs.modules = {.list = {{.name = "mlp",
                             .cost = {.forward = 4,
                                      .backward = 6,
                                      .weight = 5,
                                      .quantize_forward = 1,
                                      .quantize_backward = 2}}},
                   .layers = {{{0}}}};
  return costs;
}

TEST(SimulationReport, TellsWhatQuantizationTakesOfEachRank) {
  const Costs costs = with_quantization();
  const auto s = simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 2}, {.costs = costs});
  EXPECT_NE(text_report(**s).find("rank  busy  quantizing  bubble"), std::string::npos)
      << text_report(**s);
  const auto json = nlohmann::json::parse(json_report(**s, {}));
  EXPECT_EQ(json["ranks"][0]["quantizing"], 6);
  const auto without = simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 2});
  EXPECT_EQ(text_report(**without).find("quantizing"), std::string::npos);
  EXPECT_TRUE(
      nlohmann::json::parse(json_report(**without, {}))["ranks"][0]["quantizing"].is_null());
}

// `--cost f=10,b=12` says both times anew, and leaves open what part of them quantization takes.
TEST(SimulationReport, TellsNothingOfQuantizationWhereItsPartsAreOpen) {
  Costs costs = with_quantization();
  const auto told = [&] {
    const auto s =
        simulate_named({.name = "1f1b", .ranks = 2, .microbatches = 2}, {.costs = costs});
    const auto json = nlohmann::json::parse(json_report(**s, {}))["ranks"][0]["quantizing"];
    EXPECT_EQ(text_report(**s).find("quantizing") == std::string::npos, json.is_null());
    return !json.is_null();
  };
  costs.set({.key = CostSetting::Key::Forward, .value = 10});
  EXPECT_TRUE(told()) << "of backwards";
  costs.set({.key = CostSetting::Key::Backward, .value = 12});
  EXPECT_FALSE(told());
}

TEST(SimulationReport, ListsAreCutAndSayHowLongTheyWere) {
  const auto s = simulate_named({.name = "1f1b", .ranks = 4, .microbatches = 8});
  const auto whole = nlohmann::json::parse(json_report(**s, {}));
  const std::size_t path = whole["critical_path_total"];
  for (const std::size_t most : {path - 1, path}) {
    const auto json = nlohmann::json::parse(json_report(**s, {.most = most}));
    EXPECT_EQ(json["critical_path"].size(), most);
    EXPECT_EQ(json["critical_path_total"], path);
    EXPECT_LE(json["idle"].size(), most);
  }
}

TEST(SimulationReport, SideBySide) {
  const auto a = simulate_named({.name = "1f1b", .ranks = 4, .microbatches = 8});
  const auto b = simulate_named({.name = "zb-h1", .ranks = 4, .microbatches = 8});
  const std::string text = text_comparison({{"1f1b", &**a}, {"zb-h1", &**b}});
  EXPECT_NE(text.find("makespan                      33  27 (-18.18 %)\n"), std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(json_comparison({{"1f1b", &**a}, {"zb-h1", &**b}}));
  EXPECT_EQ(json["simulations"][1]["name"], "zb-h1");
  EXPECT_EQ(json["simulations"][1]["makespan"], 27);
}

TEST(SimulationReport, WhatCannotRunHasNone) {
  EXPECT_EQ(simulate_text("[-1, 1]")->why, "the orders have errors of their own");
  const char* stuck =
      "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n";
  EXPECT_EQ(simulate_text(stuck)->why, "the orders wait for each other");
}

// What is replayed is what runs.
TEST(SimulationReport, IsOfTheReplayAndSaysSo) {
  const std::string head = "capo 1\nplacement chain\nmicrobatches 2\n";
  const std::string last = "rank 1: F1.0 B1.0 F1.1 B1.1\n";
  const auto one_by_one = simulate_text(head + "rank 0: F1.0 B1.0 F1.1 B1.1\n" + last);
  const auto both = simulate_text(head + "rank 0: F1.0 B1.0 F1.1 B1.1\n" +
                                  "rank 0 replay: F1.0 F1.1 B1.0 B1.1\n" + last);
  const auto overlapped = simulate_text(head + "rank 0: F1.0 F1.1 B1.0 B1.1\n" + last);
  EXPECT_EQ((*both)->makespan(), (*overlapped)->makespan());
  EXPECT_LT((*both)->makespan(), (*one_by_one)->makespan());
  EXPECT_TRUE(text_report(**both).starts_with("2 ranks, 2 microbatches, 8 tasks, as replayed; "));
  EXPECT_EQ(nlohmann::json::parse(json_report(**both, {}))["replayed"], true);
  EXPECT_EQ(nlohmann::json::parse(json_report(**overlapped, {}))["replayed"], false);
  const std::vector<Named> two{{"both", &**both}, {"overlapped", &**overlapped}};
  EXPECT_NE(text_comparison(two).find("both, as replayed  overlapped\n"), std::string::npos);
  const auto compared = nlohmann::json::parse(json_comparison(two))["simulations"];
  EXPECT_EQ(compared[0]["replayed"], true);
  EXPECT_EQ(compared[1]["replayed"], false);
}

TEST(SimulationReport, AReplayThatIsTheCaptureIsNoneOfItsOwn) {
  const auto same = simulate_text(
      "capo 1\nplacement chain\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 B1.0\n");
  EXPECT_EQ(text_report(**same).find("as replayed"), std::string::npos);
}

}  // namespace
}  // namespace capo
