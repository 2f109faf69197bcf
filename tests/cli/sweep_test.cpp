// `capo sweep --optimise` as a user runs it; grids of published schedules are in simulate_test.cpp.

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

Outcome run_sweep(const std::string& flags) {
  return run_capo(split_words("sweep " + flags));
}

json runs_of(const std::string& flags) {
  const Outcome outcome = run_sweep(flags + " --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out)["runs"];
}

void expect_usage_error(const std::string& flags, const std::string& words) {
  const Outcome outcome = run_sweep(flags);
  EXPECT_EQ(outcome.exit_code, 2) << flags;
  EXPECT_EQ(outcome.out, "") << flags;
  EXPECT_TRUE(holds(outcome.err, words)) << outcome.err;
}

const std::string kGrid =
    "zb zbv --ranks 4 --microbatches 8 --cost f=3,b=4,w=2,comm=1 --optimise --moves 20000 "
    "--placement loop,v --memory ";

TEST(SweepOptimise, CompetesWithPublishedSchedules) {
  const json runs = runs_of(kGrid + "2..4");
  ASSERT_EQ(runs.size(), 12U);
  for (std::size_t i = 0; i < 3; ++i) {
    const json& line = runs[6 + i];
    const json& v = runs[9 + i];
    SCOPED_TRACE(line.dump());
    EXPECT_EQ(line["name"], "optimised-loop");
    EXPECT_EQ(v["name"], "optimised-v");
    EXPECT_EQ(line["memory_limit"], 2 + static_cast<int>(i));
    EXPECT_TRUE(line["fits"]);
    EXPECT_TRUE(v["fits"]);
    // Those of its placement are its starts.
    EXPECT_LE(line["makespan"], runs[i]["makespan"]);
    EXPECT_LE(v["makespan"], runs[3 + i]["makespan"]);
    EXPECT_GE(line["makespan"], line["lower_bound"]["makespan"]);
    EXPECT_TRUE(line["best"] || v["best"]);
  }
}

TEST(SweepOptimise, IsWhatOptimiseFinds) {
  const json runs =
      runs_of("--ranks 4 --microbatches 8 --optimise --placement bidirectional --sort span");
  ASSERT_EQ(runs.size(), 1U);
  const Outcome alone = run_capo({"optimise", "--ranks", "4", "--microbatches", "8", "--placement",
                                  "bidirectional", "--objective", "span", "--format", "json"});
  const json found = json::parse(alone.out);
  EXPECT_TRUE(found["proved"]) << "so that it is the best, whatever the starts";
  EXPECT_EQ(runs[0]["span"], found["span"]);
  EXPECT_NEAR(runs[0]["lower_bound"]["span"], found["lower_bound"]["span"], 1e-9);
}

TEST(SweepOptimise, IsTheSameForTheSameSeed) {
  const std::string flags = kGrid + "3,4.5 --threads ";
  const Outcome one = run_sweep(flags + "1");
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.out, run_sweep(flags + "3").out);
}

TEST(SweepOptimise, DrawsWhatLessMemoryCosts) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "curve.svg").string();
  const Outcome drawn = run_sweep(kGrid + "2..4 -o " + file);
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_TRUE(drawn.out.starts_with("schedule ")) << "the table";
  const std::string svg = folder.read("curve.svg");
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(holds(svg, ">4 ranks, 8 microbatches, f=3,b=4,w=2,comm=1</text>")) << svg;
  EXPECT_TRUE(holds(svg, ">optimised-loop</text>"));
  EXPECT_TRUE(holds(svg, ">zbv</text>"));
  const Outcome printed = run_sweep(kGrid + "2..4 --format svg");
  EXPECT_EQ(printed.out, svg);
  EXPECT_TRUE(run_sweep(kGrid + "2 --format text -o " + file).out.empty());
  EXPECT_TRUE(folder.read("curve.svg").starts_with("schedule ")) << "as --format says";
}

TEST(SweepOptimise, TakesAnEndingInCapitalsForAPicture) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "CURVE.SVG").string();
  EXPECT_EQ(run_sweep(kGrid + "2 -o " + file).exit_code, 0);
  EXPECT_TRUE(folder.read("CURVE.SVG").starts_with("<svg "));
}

TEST(SweepOptimise, RefusesAPointWithTheReason) {
  const json runs = runs_of(
      "--optimise --placement loop,v,bidirectional --ranks 2 --microbatches 3 --chunks 3 "
      "--memory 0.1,9");
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_TRUE(holds(runs[0]["refused"], "one microbatch by itself holds 1 on rank 0"));
  EXPECT_FALSE(runs[1].contains("refused"));
  EXPECT_TRUE(holds(runs[3]["refused"], "an even number of chunks"));
  EXPECT_TRUE(holds(runs[5]["refused"], "two pipelines share microbatches evenly"));
  const std::string counts = "--optimise --ranks 2 --microbatches 4 ";
  EXPECT_EQ(run_sweep(counts + "--max-entries 24").exit_code, 0);
  EXPECT_EQ(run_sweep(counts + "--max-entries 23").exit_code, 4);
}

TEST(SweepOptimise, ReadsRangesOfMemory) {
  std::vector<double> limits;
  for (const json& each : runs_of("1f1b --ranks 2 --microbatches 2 --memory 1..2:0.25,7,3..4")) {
    limits.push_back(each["memory_limit"]);
  }
  EXPECT_EQ(limits, (std::vector<double>{1, 1.25, 1.5, 1.75, 2, 7, 3, 4}));
  const std::string flags = "1f1b --ranks 2 --microbatches 2 --memory ";
  expect_usage_error(flags + "4..2", "--memory: `4..2` ends before it begins");
  expect_usage_error(flags + "0..2", "--memory: `0` is no number above 0");
  expect_usage_error(flags + "1..", "--memory: `` is no number above 0");
  expect_usage_error(flags + "1..2:0", "--memory: `0` is no number above 0");
  expect_usage_error(flags + "1..9 --max-runs 8", "more limits than --max-runs, 8");
  EXPECT_EQ(run_sweep(flags + "1..9 --max-runs 9").exit_code, 0);
}

TEST(SweepOptimise, ItsFlagsNeedIt) {
  const std::string counts = " --ranks 2 --microbatches 2 ";
  expect_usage_error(counts, "the name of a schedule");
  expect_usage_error("1f1b" + counts + "--placement v", "--optimise");
  expect_usage_error("1f1b" + counts + "--moves 9", "--optimise");
  expect_usage_error("--optimise --placement free" + counts, "free is searched point by point");
  expect_usage_error("--optimise --placement w" + counts,
                     "`w` is none of loop, v and bidirectional");
}

}  // namespace
}  // namespace capo
