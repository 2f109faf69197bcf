// Lists as people have them in hand: what is printed is checked, the ranks of a schedule in one
// text, one of them by --rank.

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

Outcome check(const std::string& text, std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), {"check", "-"});
  return run_capo(flags, {.input = text});
}

const std::string kTwoRanks = "[1, 1, -1, -1]\n[1, -1, 1, -1]\n";

TEST(ListsOfRanks, ThatCapoWritesCapoReads) {
  const Outcome lists = run_capo({"generate", "megatron", "--pp", "4", "--vp", "2",
                                  "--microbatches", "8", "--rank", "all", "--format", "te"});
  const Outcome outcome = check(lists.out, {"--topology", "loop", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  const json environment = json::parse(outcome.out)["environment"];
  EXPECT_EQ(environment["ranks"], 4);
  EXPECT_EQ(environment["chunks"], json({2, 2, 2, 2}));
  EXPECT_EQ(environment["microbatches"], 8);

  const Outcome order = run_capo({"generate", "megatron", "--pp", "4", "--vp", "2",
                                  "--microbatches", "8", "--rank", "all", "--format", "order"});
  // The file says besides how Megatron calls its transfers.
  EXPECT_EQ(
      run_capo({"simulate", "-", "--topology", "loop", "--p2p", "overlap"}, {.input = lists.out})
          .out,
      run_capo({"simulate", "-"}, {.input = order.out}).out);
}

TEST(ListsOfRanks, AreWiredOnlyIfATopologyIsDeclared) {
  EXPECT_TRUE(holds(check(kTwoRanks).out, "2 ranks, 1 chunk each, 2 microbatches"));
  EXPECT_TRUE(holds(check(kTwoRanks).out, "topology independent"));
  EXPECT_EQ(check(kTwoRanks, {"--topology", "chain"}).exit_code, 0);
}

TEST(ListsOfRanks, HaveFindingsWithTheirRank) {
  const Outcome odd = check("[[1, -1], [1, 1.5, -1]]");
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_TRUE(holds(odd.out, "`1.5` at index 1 of rank 1 is a fractional forward")) << odd.out;
  const json report = json::parse(check("[[1, -1], [1, 1.5, -1]]", {"--format", "json"}).out);
  EXPECT_EQ(report["diagnostics"][0]["witness"]["tasks"][0]["rank"], 1);
  EXPECT_EQ(report["diagnostics"][0]["witness"]["tasks"][0]["index"], 1);
  const Outcome surplus = check("[[1, -1], [1, -1, -1]]");
  EXPECT_TRUE(holds(surplus.out, "of rank 1")) << surplus.out;
}

TEST(ListsOfRanks, AreAskedOfTransformerEngineRankByRank) {
  const json report = json::parse(
      check("[[1, -1], [1, np.float64(1.0), -1, -1]]", {"--profile", "te", "--format", "json"})
          .out);
  EXPECT_EQ(report["profiles"]["te"]["accepts"], false);
  EXPECT_TRUE(
      report["profiles"]["te"]["reason"].get<std::string>().starts_with("rank 1: py.TypeError"))
      << report["profiles"]["te"];
}

TEST(ListsOfRanks, OneIsChosenByItsNumber) {
  const std::string text = "[1, 1, -1, -1]\n[1, -1, -1]\n";
  EXPECT_EQ(check(text).exit_code, 1);
  const Outcome first = check(text, {"--rank", "0"});
  EXPECT_EQ(first.exit_code, 0) << first.out;
  EXPECT_TRUE(holds(first.out, "1 rank, 1 chunk, 2 microbatches")) << first.out;
  const Outcome second = check(text, {"--rank", "1"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(holds(second.out, "--> <stdin>:2:9")) << second.out;
  EXPECT_TRUE(holds(second.out, "`-1` at index 2 is")) << second.out;
}

TEST(ListsOfRanks, MayStandInJson) {
  const Outcome outcome =
      check(R"({"order": [[1, 1, -1, -1], [1, -1, 1, -1]]})", {"--topology", "chain"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "2 ranks")) << outcome.out;
  EXPECT_EQ(check(R"({"order": [[1, -1], 2]})").exit_code, 3);
  EXPECT_EQ(check(R"({"order": [1, [2]]})").exit_code, 3);
}

TEST(ListsOfRanks, MayBeTheLinesOfALog) {
  const Outcome outcome =
      check("10:02 [rank1]: _order=[1, -1, 1, -1]\n10:02 [rank0]: _order=[1, 1, -1, -1]\n",
            {"--topology", "chain"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
}

// --- whole floats --------------------------------------------------------------------------------

TEST(WholeFloats, OfAPrintedArrayAreChunksWithOneNote) {
  const Outcome outcome = check("[ 1.  1. -1. -1.5 -1. -1.5]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "2 microbatches")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "  note: 4 whole floats of a printed array")) << outcome.out;
  const json report = json::parse(check("[ 1. -1.]", {"--format", "json"}).out);
  EXPECT_EQ(report["notes"].size(), 1U);
  const json sarif = json::parse(check("[ 1. -1.]", {"--format", "sarif"}).out);
  EXPECT_EQ(sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["level"], "note");
}

TEST(WholeFloats, OfAPrintedArrayMakeTransformerEngineRaise) {
  const Outcome outcome = check("array([ 1. , -1. ])", {"--profile", "te"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "profile te: refuses (right and refused there)")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "TypeError")) << outcome.out;
}

TEST(WholeFloats, OfAPlainListStayAnErrorAndTheReportSaysWhatTheyCount) {
  const Outcome outcome = check("[1.0, -1, 1.0]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(holds(outcome.out, "error[S03]")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out,
                    "  note: each of the 2 whole floats names no chunk, since Python "
                    "takes no float for an index, and counts as nothing here\n"))
      << outcome.out;
}

// --- Megatron's own names ------------------------------------------------------------------------

TEST(MegatronsNames, AreTakenEverywhere) {
  const std::vector<std::string> own{"generate",
                                     "megatron",
                                     "--pipeline-model-parallel-size",
                                     "2",
                                     "--num-virtual-stages-per-pipeline-rank",
                                     "2",
                                     "--num-microbatches",
                                     "4",
                                     "--rank",
                                     "all",
                                     "--overlap-moe-expert-parallel-comm",
                                     "--delay-wgrad-compute",
                                     "--microbatch-group-size-per-virtual-pipeline-stage",
                                     "2"};
  EXPECT_EQ(run_capo(own).out,
            run_capo({"generate", "megatron", "--pp", "2", "--vp", "2", "--microbatches", "4",
                      "--rank", "all", "--overlap", "--delayed-wgrad", "--group-size", "2"})
                .out);
  EXPECT_EQ(run_capo(own).exit_code, 0) << run_capo(own).err;
  EXPECT_EQ(
      run_capo({"generate", "1f1b-interleaved", "--pp", "4", "--vp", "2", "--microbatches", "8"})
          .out,
      run_capo(
          {"generate", "1f1b-interleaved", "--ranks", "4", "--chunks", "2", "--microbatches", "8"})
          .out);
  EXPECT_EQ(run_capo({"sweep", "1f1b", "--pp", "4", "--microbatches", "8"}).out,
            run_capo({"sweep", "1f1b", "--ranks", "4", "--microbatches", "8"}).out);
}

}  // namespace
}  // namespace capo
