// `capo optimise --recompute choose` as a user runs it.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

Outcome run_choosing(const std::string& line) {
  return run_capo(split_words(line));
}

const std::string kCostsOfAgain =
    " --cost f=10,b=12,w=8,comm=1 --mem f=1,b=0,w=-1,keep=0.1 --memory 2 ";

TEST(OptimiseChoose, NamesTheChunksAsSimulateTakesThem) {
  for (const std::string placement : {"loop", "v", "bidirectional", "free"}) {
    SCOPED_TRACE(placement);
    const ScratchFolder folder;
    const std::string order = (folder.path() / "best.order").string();
    const std::string line =
        "optimise --ranks 3 --microbatches 6 --moves 200000 --time 10m "
        "--exhaustive 0 --recompute choose --placement " +
        placement + kCostsOfAgain;
    const Outcome outcome = run_choosing(line + "--format json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json found = json::parse(outcome.out);
    EXPECT_GE(found["makespan"], found["lower_bound"]["makespan"]);
    ASSERT_EQ(run_choosing(line + "-o " + order).exit_code, 0);
    std::string again = "simulate " + order + kCostsOfAgain + "--format json";
    if (!found["recomputed"].is_null()) {
      again += " --recompute " + found["recomputed"].get<std::string>();
    }
    const Outcome simulated = run_choosing(again);
    ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
    EXPECT_EQ(json::parse(simulated.out)["makespan"], found["makespan"]);
  }
}

TEST(OptimiseChoose, IsNoWorseThanAllOrNone) {
  const std::string line =
      "optimise --ranks 4 --microbatches 8 --time 10m --format json" + kCostsOfAgain;
  const auto makespan = [&](const std::string& flags) {
    return json::parse(run_choosing(line + flags).out)["makespan"].get<double>();
  };
  const double best = makespan("--moves 1500000 --recompute choose");
  EXPECT_LE(best, makespan("--moves 200000 --recompute all"));
  EXPECT_LE(best, makespan("--moves 200000"));
  const Outcome roomy =
      run_choosing("optimise --ranks 2 --microbatches 4 --cost re=3 --memory 9 --recompute choose");
  EXPECT_TRUE(holds(roomy.out, "\nrecompute none\n")) << roomy.out;
}

TEST(OptimiseChoose, RefusesWhatIsOfOneChoice) {
  const std::string line = "optimise --ranks 2 --microbatches 4 --recompute choose ";
  const Outcome bound = run_choosing(line + "--bound-out bound.json");
  EXPECT_EQ(bound.exit_code, 2);
  EXPECT_TRUE(holds(bound.err, "no use with --recompute choose")) << bound.err;
  EXPECT_EQ(run_choosing(line + "--for mcore").exit_code, 2);
}

}  // namespace
}  // namespace capo
