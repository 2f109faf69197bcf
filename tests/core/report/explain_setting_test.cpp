// What --explain-model prints: every fact that a verdict is relative to, where it came from and
// what it means, as whole text.

#include "core/report/report.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;

std::string explained(const testing_support::Setting& setting, const std::string& text,
                      const LoadOptions& options = {}) {
  const Checked checked = check_in(setting, text, options);
  return explain_setting(report_of(checked.input, checked.result, {}));
}

// The line of one fact and the one below it.
std::string fact(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("\n  " + name + " ") + 1;
  if (begin == 0) return "";
  return text.substr(begin, text.find('\n', text.find('\n', begin) + 1) + 1 - begin);
}

const std::string kTwoRanks =
    "capo 1\nranks 2\nchunks 1\nmicrobatches 1\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n";

TEST(ExplainSetting, OfABareListNothingIsDeclared) {
  EXPECT_EQ(
      explained({}, "[1, 2, -2, -1]"),
      "\nThe verdict is relative to:\n"
      "  topology independent (not declared)\n"
      "      chunks are not wired to each other, so that no rule about stages or transfers "
      "applies; --topology wires them\n"
      "  chunks 2 (not declared)\n"
      "      parts of the model on each rank; if not declared, the largest that its order "
      "names\n"
      "  microbatches 1 (not declared)\n"
      "      of one step; if not declared, as many as most chunks run forward, or where the "
      "order names them the largest plus one\n"
      "  plan none (not declared)\n"
      "      memory is not judged, but for a TE list and a replay of its own, of which warnings "
      "say what TransformerEngine's reuse of buffers would do to them\n"
      "  modules none (not declared)\n"
      "      what a weight gradient reads, what becomes of it, and sizes are not known: what "
      "depends on them is a warning\n");
}

TEST(ExplainSetting, OfSeveralWiredRanksSaysHowTheyCommunicate) {
  EXPECT_EQ(
      explained({}, kTwoRanks),
      "\nThe verdict is relative to:\n"
      "  topology chain (declared)\n"
      "      stages follow each other chunk by chunk, rank by rank\n"
      "  chunks 1, 1 (declared)\n"
      "      parts of the model on each rank; if not declared, the largest that its order "
      "names\n"
      "  microbatches 1 (declared)\n"
      "      of one step; if not declared, as many as most chunks run forward, or where the order "
      "names them the largest plus one\n"
      "  communicators any (not declared)\n"
      "      the verdict holds with one for each rank, for each pair of ranks and for each "
      "direction between two; findings say which of them they need\n"
      "  transfers any (not declared)\n"
      "      the verdict holds whether a send ends when its receive does or by itself\n"
      "  p2p none (not declared)\n"
      "      transfers are those that the orders write; where they write none, those that "
      "PyTorch adds\n"
      "  plan none (not declared)\n"
      "      memory is not judged, but for a TE list and a replay of its own, of which warnings "
      "say what TransformerEngine's reuse of buffers would do to them\n"
      "  modules none (not declared)\n"
      "      what a weight gradient reads, what becomes of it, and sizes are not known: what "
      "depends on them is a warning\n");
}

TEST(ExplainSetting, SaysWhatEachCommunicatorLayoutMeans) {
  const auto communicators = [](Communicators layout) {
    return fact(explained({.environment = {.communicators = layout}}, kTwoRanks), "communicators");
  };
  EXPECT_EQ(
      communicators(Communicators::PerRank),
      "  communicators per-rank (declared)\n"
      "      all transfers of a rank run in the order in which it issues them: what finishes so "
      "finishes with every layout, and what races so races with every layout\n");
  EXPECT_EQ(
      communicators(Communicators::PerPair),
      "  communicators per-pair (declared)\n"
      "      transfers between the same two ranks run in the order of issue, as NCCL's lazily "
      "made communicators do\n");
  EXPECT_EQ(communicators(Communicators::PerEdge),
            "  communicators per-edge (declared)\n"
            "      transfers from one rank to another run in the order of issue, each direction by "
            "itself\n");
}

TEST(ExplainSetting, SaysWhatASendWaitsFor) {
  const auto transfers = [](TransferMode mode) {
    return fact(explained({.environment = {.transfers = mode}}, kTwoRanks), "transfers");
  };
  EXPECT_EQ(transfers(TransferMode::Rendezvous),
            "  transfers rendezvous (declared)\n"
            "      a send ends when its receive does\n");
  EXPECT_EQ(transfers(TransferMode::Buffered),
            "  transfers buffered (declared)\n"
            "      a send ends by itself, received or not\n");
}

TEST(ExplainSetting, SaysHowMegatronCallsAndWhatRunsAsOne) {
  const std::string megatron =
      explained({.environment = {.p2p = MegatronCalls::Flush, .ep_overlap = true}}, kTwoRanks);
  EXPECT_EQ(fact(megatron, "p2p"),
            "  p2p flush (declared)\n"
            "      transfers are those that Megatron's runtime calls around the computations\n");
  EXPECT_EQ(fact(megatron, "ep-overlap"),
            "  ep-overlap on (declared)\n"
            "      forward and backward of a step run as one\n");
  EXPECT_EQ(fact(explained({}, kTwoRanks), "ep-overlap"), "");
}

TEST(ExplainSetting, SaysHowChunksFollowEachOther) {
  const auto topology = [](Topology declared) {
    return fact(explained({.topology = declared}, "[1, 2, -2, -1]"), "topology");
  };
  EXPECT_EQ(topology(Topology::Chain),
            "  topology chain (declared)\n"
            "      stages follow each other chunk by chunk, rank by rank\n");
  EXPECT_EQ(topology(Topology::Loop),
            "  topology loop (declared)\n"
            "      stage s is on rank s mod P: chunks go around the ranks\n");
  EXPECT_EQ(topology(Topology::V),
            "  topology v (declared)\n"
            "      stages go down the ranks and up again\n");
  EXPECT_EQ(fact(explained({}, "0F0,0B0\n1F0,1B0\n", {.form = TextForm::TorchCsv}), "topology"),
            "  topology custom (declared)\n"
            "      stages are where the input places them\n");
}

// One rank talks to nobody.
TEST(ExplainSetting, OfOneRankSaysNothingOfTransfers) {
  EXPECT_EQ(fact(explained({.topology = Topology::Chain}, "[1, 2, -2, -1]"), "communicators"), "");
}

TEST(ExplainSetting, ChunksOfManyRanksAreNotListed) {
  const auto chunks = [](int ranks) {
    std::string text = "capo 1\nranks " + std::to_string(ranks) + "\n";
    for (int r = 0; r < ranks; ++r) text += "rank " + std::to_string(r) + ": F1 B1\n";
    const std::string line = fact(explained({}, text), "chunks");
    return line.substr(0, line.find('\n'));
  };
  EXPECT_EQ(chunks(16), "  chunks 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 (not declared)");
  EXPECT_EQ(chunks(17), "  chunks of 17 ranks (not declared)");
}

TEST(ExplainSetting, OfARefusedInputThereIsNothingToSay) {
  const Source source{.name = "broken", .text = "[1, "};
  EXPECT_EQ(explain_setting(report_of(source, Refusal{})), "");
}

}  // namespace
}  // namespace capo
