// `capo optimise --placement free` as a user runs it: orders of whichever placement is best.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
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

Outcome run_free(const std::string& flags) {
  return run_capo(split_words("optimise --placement free " + flags));
}

// Two slow links, which a loop and a V of the ranks as they are numbered cross.
const std::string kCostsOfLinks =
    " --cost f=5,b=6,w=4,comm=1 --cost r0-r1:comm=15 --cost r2-r3:comm=15 ";
const std::string kStepOfLinks =
    " --ranks 4 --microbatches 6 --memory 2 --time 10m --exhaustive 0" + kCostsOfLinks;
const std::string kSlowLinks = kStepOfLinks + "--moves 300000 ";

TEST(OptimiseFree, WritesThePlacementThatItFinds) {
  const ScratchFolder folder;
  const std::string order = (folder.path() / "best.order").string();
  const Outcome outcome =
      run_free(kSlowLinks + "--format json -o " + (folder.path() / "o").string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json of_order = json::parse(outcome.out);
  ASSERT_TRUE(of_order["placement"].is_array()) << of_order["placement"];
  EXPECT_TRUE(holds(of_order["rests_on"].get<std::string>(), "any placement"));

  const Outcome text = run_free(kSlowLinks + "-o " + order);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  std::string ranks;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto stages = of_order["placement"][rank].get<std::vector<int>>();
    ASSERT_EQ(stages.size(), 2U);
    ranks += (rank == 0 ? "" : "; ") + std::string("rank ") + std::to_string(rank) + " stages " +
             std::to_string(stages[0]) + "," + std::to_string(stages[1]);
  }
  EXPECT_TRUE(holds(text.out, "\nplaced    " + ranks + "\nlooked at ")) << text.out;

  std::vector<std::string> words{"simulate", order, "--format", "json", "--memory", "2"};
  std::istringstream costs(kCostsOfLinks);
  for (std::string word; costs >> word;) words.push_back(word);
  const Outcome simulated = run_capo(words);
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_EQ(json::parse(simulated.out)["makespan"], of_order["makespan"]);
  EXPECT_EQ(run_capo({"check", order}).exit_code, 0);

  const Outcome again = run_free(kStepOfLinks + "--from " + order + " --moves 1 --format json");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_LE(json::parse(again.out)["makespan"], of_order["makespan"]) << "as good as its start";
}

TEST(OptimiseFree, NamesALoopOrVByItsName) {
  const Outcome outcome = run_free("--ranks 1 --microbatches 2 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json found = json::parse(outcome.out);
  EXPECT_EQ(found["placement"], "loop");
  EXPECT_TRUE(found["proved"]);
  const Outcome order = run_free("--ranks 2 --microbatches 2 --chunks 1 --format order");
  EXPECT_TRUE(holds(order.out, "placement loop\n")) << order.out;
  const Outcome loop =
      run_capo({"optimise", "--ranks", "2", "--microbatches", "2", "--format", "json"});
  EXPECT_EQ(json::parse(loop.out)["placement"], "loop");
}

TEST(OptimiseFree, ProvesSmallStepsForAllPlacements) {
  const Outcome outcome = run_free(
      "--ranks 2 --microbatches 2 --cost r0:f=3,b=1,w=2 --cost r1:f=2,b=5,w=1 --cost comm=1 "
      "--memory 1.5 --time 10m --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json found = json::parse(outcome.out);
  EXPECT_TRUE(found["proved"]) << found;
  EXPECT_EQ(found["ended"], "proof");
}

TEST(OptimiseFree, IsForWhomRunsAnyPlacement) {
  const Outcome torch = run_free(kSlowLinks + "--for torch");
  EXPECT_EQ(torch.exit_code, 0) << torch.err;
  const Outcome te = run_free(kSlowLinks + "--for te");
  EXPECT_EQ(te.exit_code, 0) << te.err;
  EXPECT_TRUE(holds(te.err, "note: te does not say the placement: rank 0 stages ")) << te.err;
  const Outcome mcore = run_free(kSlowLinks + "--for mcore");
  EXPECT_EQ(mcore.exit_code, 1);
  EXPECT_TRUE(holds(mcore.err, "places the chunks of its ranks in a loop")) << mcore.err;
}

TEST(OptimiseFree, RefusesOrdersOfTwoPipelines) {
  const ScratchFolder folder;
  const std::string order = (folder.path() / "two.order").string();
  ASSERT_EQ(run_capo({"generate", "dualpipe", "--ranks", "4", "--microbatches", "8", "-o", order})
                .exit_code,
            0);
  const Outcome outcome = run_free("--ranks 4 --microbatches 8 --from " + order);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(holds(outcome.err, "has two pipelines")) << outcome.err;
}

}  // namespace
}  // namespace capo
