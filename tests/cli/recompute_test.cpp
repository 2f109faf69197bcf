// `--recompute` of `capo simulate`, `compare` and `optimise`.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;
using testing_support::split_words;

Outcome run_words(const std::string& line) {
  return run_capo(split_words(line));
}

json printed_by(const std::string& line) {
  const Outcome outcome = run_words(line + " --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

const std::string kCosts =
    " --cost f=10,b=12,w=8,comm=1 --mem f=1,b=0,w=-1,keep=0.1 --memory 1.3 --recompute ";

TEST(Recompute, WhatIsFoundIsWhatSimulateSays) {
  const ScratchFolder folder;
  const std::string order = (folder.path() / "best.order").string();
  for (const std::string chunks : {"all", "r1c1,r2,r0,r3"}) {
    const std::string counts = "optimise --ranks 4 --microbatches 8 --moves 20000";
    const json found = printed_by(counts + kCosts + chunks);
    EXPECT_EQ(found["recomputed"], chunks);
    const Outcome written = run_words(counts + " -o " + order + kCosts + chunks);
    EXPECT_TRUE(holds(written.out, "\nrecompute " + chunks + ", keeping 0.1 of f\n"))
        << written.out;
    const json simulated = printed_by("simulate " + order + kCosts + chunks);
    EXPECT_EQ(simulated["makespan"], found["makespan"]);
    EXPECT_EQ(simulated["recomputed"], chunks);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(simulated["ranks"][rank]["peak_activations"], found["peak_memory"][rank]);
      EXPECT_LE(found["peak_memory"][rank], 1.3 * (1 + 1e-9));
    }
    EXPECT_GE(found["makespan"], found["lower_bound"]["makespan"]);
  }
  const json held = printed_by(
      "optimise --ranks 4 --microbatches 8 --moves 20000 --memory 1.3"
      " --cost f=10,b=12,w=8,comm=1");
  EXPECT_EQ(held["recomputed"], nullptr);
  EXPECT_LT(
      printed_by("optimise --ranks 4 --microbatches 8 --moves 20000" + kCosts + "all")["makespan"],
      held["makespan"])
      << "little memory costs more than running forwards again";
}

TEST(Recompute, PublishedSchedulesRecomputeAsWell) {
  const json found =
      printed_by("optimise --ranks 4 --microbatches 8 --moves 1000" + kCosts + "all");
  const ScratchFolder folder;
  const std::string order = (folder.path() / "1f1b.order").string();
  ASSERT_EQ(run_words("generate 1f1b --ranks 4 --microbatches 8 -o " + order).exit_code, 0);
  const json simulated = printed_by("simulate " + order + kCosts + "all");
  const auto named =
      std::ranges::find_if(found["named"], [](const json& each) { return each["name"] == "1f1b"; });
  ASSERT_NE(named, found["named"].end());
  EXPECT_NEAR((*named)["makespan"], simulated["makespan"], 1e-9);
  EXPECT_EQ((*named)["fits"], true) << "1.3 of a microbatch, where 1F1B holds 4";
}

TEST(Recompute, RefusesModulesThatRecomputeAlready) {
  const ScratchFolder folder;
  const std::string model = (folder.path() / "model.json").string();
  const std::string order = (folder.path() / "step.order").string();
  ASSERT_EQ(run_words("generate 1f1b --ranks 2 --microbatches 2 -o " + order).exit_code, 0);
  folder.write("model.json", R"({"schema": 1, "layers": [["block"], ["block"]],
    "configuration": {"hidden": 64, "ffn": 128, "sequence": 16, "micro_batch": 1, "dtype": "bf16",
                      "recompute": "full"},
    "modules": {"block": {"kind": "layernorm-mlp",
                          "cost": {"forward": 1, "backward": 3, "weight": 1}}}})");
  const std::string why =
      "--recompute: names chunk 1 of rank 0, but the configuration of its module `block` says "
      "`recompute`: its backward has the forward already";
  const Outcome simulated = run_words("simulate " + order + " --recompute r0 --model " + model);
  EXPECT_EQ(simulated.exit_code, 2) << simulated.out;
  EXPECT_TRUE(holds(simulated.err, why)) << simulated.err;
  const Outcome searched =
      run_words("optimise --ranks 2 --microbatches 2 --recompute r0 --model " + model);
  EXPECT_EQ(searched.exit_code, 2) << searched.out;
  EXPECT_TRUE(holds(searched.err, why)) << searched.err;
}

TEST(Recompute, RefusesChunksThatThereAreNot) {
  const auto refused = [](const std::string& line, const std::string& why) {
    const Outcome outcome = run_words("optimise --ranks 2 --microbatches 2 " + line);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_TRUE(holds(outcome.err, why)) << outcome.err;
  };
  refused("--recompute r2", "--recompute: speaks of rank 2, but there are 2");
  refused("--recompute r0c2", "--recompute: speaks of chunk 2, but no rank has more than 1");
  refused("--recompute x", "--recompute: `x` names no chunks; write all");
  refused("--mem f=1,b=0,w=-1,keep=-1", "keep=-1 is no share of f, from 0 to 1");
}

// One microbatch by itself has to fit where it runs back.
TEST(Recompute, SaysWhatOneMicrobatchHolds) {
  const Outcome none = run_words(
      "optimise --ranks 2 --microbatches 2 --placement v --mem f=1,b=0,w=-1,keep=0.1 --memory 0.5"
      " --recompute all");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err,
            "error: there is no such order: one microbatch by itself holds 0.55 on rank 0, and 0.5 "
            "is the limit\n");
}

}  // namespace
}  // namespace capo
