// TE lists as programs print them: NumPy, PyTorch, logs, and the lists of several ranks.

#include "core/frameworks/te/list_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

// The lists of the ranks, one a line; a refusal with its place.
std::string read(std::string_view text, const Limits& limits = {}) {
  const auto lists = read_te_lists(text, limits);
  if (!lists) {
    const Diagnostic& finding = lists.error().finding;
    return finding.message + " @" + std::to_string(finding.labels.at(0).span.offset);
  }
  std::string out;
  for (std::size_t rank = 0; rank < lists->begins.size(); ++rank) {
    const auto begin = lists->list.entries.begin() + lists->begins[rank];
    const auto end = rank + 1 < lists->begins.size()
                         ? lists->list.entries.begin() + lists->begins[rank + 1]
                         : lists->list.entries.end();
    out += print_te_list({.entries = {begin, end}});
  }
  return out;
}

std::vector<std::string> notes_of(std::string_view text) {
  return read_te_lists(text, {}).value().notes;
}

NumberType type_of(std::string_view text, std::size_t at) {
  return read_te_lists(text, {}).value().list.entries.at(at).type;
}

// --- numbers -------------------------------------------------------------------------------------

TEST(PrintedLists, OfNumPyAndTorchAreRead) {
  for (const char* text :
       {"[np.int64(1), np.int64(-1), np.float64(-1.5)]", "[tensor(1), tensor(-1), tensor(-1.5)]",
        "(1, -1, -1.5)", "np.array([1, -1, -1.5])", "deque([1, -1, -1.5])",
        "[\xe2\x88\x92"
        "1, 1]\n",
        "[torch.tensor(1, device='cuda:0'), numpy.int32(-1)]"}) {
    const std::string lists = read(text);
    EXPECT_TRUE(lists.starts_with('[')) << text << ": " << lists;
  }
  EXPECT_EQ(read("[np.int64(1), np.int64(-1), np.float64(-1.5)]"), "[1, -1, -1.5]\n");
  EXPECT_EQ(read("(1, -1, -1.5)"), "[1, -1, -1.5]\n");
  EXPECT_EQ(read("[1, \xe2\x88\x92"
                 "1, \xe2\x88\x92"
                 "1.5]"),
            "[1, -1, -1.5]\n");
  EXPECT_EQ(read("tensor([ 1, -1])"), "[1, -1]\n");
  EXPECT_EQ(read("tensor([ 1, -1], device='cuda:0', dtype=torch.int32)"), "[1, -1]\n");
  EXPECT_EQ(read("()"), "[]\n");
  EXPECT_EQ(read("array([], dtype=float64)"), "[]\n");
}

TEST(PrintedLists, AWholeFloatOfAPrintedFormNamesAChunk) {
  for (const char* text :
       {"array([ 1. , -1. , -1.5])", "tensor([ 1.0000, -1.0000, -1.5000])", "[ 1.  -1.  -1.5]",
        "[np.float64(1.0), np.float64(-1.0), np.float64(-1.5)]",
        "[np.float64(1), numpy.float32(-1), np.float64(-1.5)]",
        "tensor([ 1.0000, -1.0000, -1.5000], dtype=torch.float64)"}) {
    EXPECT_EQ(read(text), "[1.0, -1.0, -1.5]\n") << text;
    EXPECT_EQ(type_of(text, 0), NumberType::PrintedFloat) << text;
    ASSERT_EQ(notes_of(text).size(), 1U) << text;
    EXPECT_EQ(notes_of(text).front(),
              "2 whole floats of a printed array are read as the chunks that they name; if the "
              "list that TransformerEngine gets holds floats, it raises TypeError");
  }
  for (const char* text : {"[1.0, -1.0, -1.5]", "[1., -1.]", "1.0 -1.0", "(1.0, -1.0)"}) {
    EXPECT_EQ(type_of(text, 0), NumberType::Float) << text;
    EXPECT_TRUE(notes_of(text).empty()) << text;
  }
  EXPECT_TRUE(notes_of("array([1, -1, 2])").empty());
  EXPECT_TRUE(notes_of("[np.int64(1), tensor(-1)]").empty());
}

TEST(PrintedLists, APlaceIsThatOfTheWholeCall) {
  const TeList list = read_te_list("[np.int64(1), -1]", {}).value();
  EXPECT_EQ(list.entries.at(0).span(), (Span{1, 11}));
  EXPECT_EQ(list.entries.at(1).span(), (Span{14, 2}));
}

TEST(PrintedLists, WhatWasLeftOutWhenPrintingIsNotGuessed) {
  EXPECT_EQ(read("[ 1  1  1 ... -1 -1 -1]"),
            "`...` stands for entries that were left out when this was printed @10");
  EXPECT_EQ(read("tensor([1, 1,  ..., -1])"),
            "`...` stands for entries that were left out when this was printed @15");
}

TEST(PrintedLists, ADashIsToldFromAQuotationMark) {
  const auto help_of = [](std::string_view text) {
    return read_te_lists(text, {}).error().finding.help.text;
  };
  EXPECT_NE(help_of("[1, \xe2\x80\x93"
                    "1]")
                .find("this is a dash"),
            std::string::npos);
  EXPECT_EQ(help_of("[\xe2\x80\x98"
                    "1\xe2\x80\x99]"),
            help_of("['1']"));
}

TEST(PrintedLists, OtherCallsAreRefused) {
  EXPECT_EQ(read("[1, float('nan')]"), "`float` is not a number @4");
  EXPECT_EQ(read("[1, np.nan]"), "`np.nan` is not a number @4");
  EXPECT_EQ(read("[np.float64(x)]"), "`x` is not a number @12");
  EXPECT_EQ(read("[np.float64(1]"), "this parenthesis is never closed @11");
  EXPECT_EQ(read("tensor([1, -1]"), "this parenthesis is never closed @6");
  EXPECT_EQ(read("(1, -1"), "this parenthesis is never closed @0");
  EXPECT_EQ(read("[1, (2, 3)]"), "an annotation with no entry before it @4");
  EXPECT_EQ(read("(1, -1]"), "unexpected `]` @6");
}

TEST(PrintedLists, AnnotationsStayWhatTheyAre) {
  EXPECT_EQ(read("1 -1(dgrad) -1.5(delayed wgrad)"), "[1, -1, -1.5]\n");
  EXPECT_EQ(read("(1 (fwd), -1 (bwd))"), "[1, -1]\n");
}

// --- logs ----------------------------------------------------------------------------------------

TEST(LoggedLists, TheListBehindOrderIsRead) {
  for (const char* text :
       {"_order=[1, -1]", "10:02:01 [INFO] capturing with _order=[1, -1], sample_args=...\n",
        "2026-11-25 [rank3]: _order = [1, -1]", "make_graphed_callables(f, _order=(1, -1), x=1)",
        "starting\n[INFO] order=tensor([1, -1]) done\nother lines\n"}) {
    EXPECT_EQ(read(text), "[1, -1]\n") << text;
  }
  EXPECT_EQ(read("# the order = ours\n[1, -1]"), "[1, -1]\n");
  EXPECT_EQ(read("1(order=2) -1"), "[1, -1]\n");
  EXPECT_EQ(notes_of("_order=[1, -1], _num_layers_per_chunk=[1]\n").size(), 1U);
}

TEST(LoggedLists, LinesAreTheRanksTheyName) {
  EXPECT_EQ(read("[rank1]: _order=[1, -1]\n[rank0]: _order=[1, 1, -1, -1]\n"),
            "[1, 1, -1, -1]\n[1, -1]\n");
  EXPECT_EQ(read("_order=[1, 1, -1, -1]\n_order=[1, -1]\n"), "[1, 1, -1, -1]\n[1, -1]\n");
  EXPECT_EQ(read("pp_rank=1 _order=[2, -2]\npp_rank=0 _order=[1,\n -1]\n"), "[1, -1]\n[2, -2]\n");
}

TEST(LoggedLists, RanksThatAreNoneOfOnePipelineAreRefused) {
  EXPECT_EQ(read("rank 0 order=[1, -1]\nrank 0 order=[1, -1]"), "rank 0 has a second line @26");
  EXPECT_EQ(read("rank 0 order=[1, -1]\nrank 2 order=[1, -1]"),
            "rank 2 has a line, and rank 1 has none @26");
  EXPECT_EQ(read("rank 0 order=[1, -1]\norder=[1, -1]"),
            "this line does not say its rank, and others do @21");
}

// --- ranks ---------------------------------------------------------------------------------------

TEST(LoggedLists, OfMegatronAreOfOneRankOfEachStage) {
  EXPECT_EQ(read("Rank 0: ORDER [1, -1]\n"), "[1, -1]\n");
  const std::string log =
      " > building datasets [0, 1]\n"
      "[2026-11-02 10:11:12] 1: Rank 8: ORDER [1, -1, 1, -1]\n"
      "DEBUG:megatron.core.transformer.cuda_graphs:Rank 0: ORDER [1, 1, -1, -1]\n"
      "# Rank 0: ORDER [2, -2]\n"
      "Rank 16: ORDER [1, -1, 1, -1]\ntraining ...\n";
  EXPECT_EQ(read(log), "[1, 1, -1, -1]\n[1, -1, 1, -1]\n[1, -1, 1, -1]\n");
  EXPECT_EQ(notes_of(log),
            std::vector<std::string>{"ranks 0 to 16 of the log, by 8, are ranks 0 to 2 here"});
  EXPECT_EQ(notes_of("Rank 0: ORDER [1, -1]\nRank 1: ORDER [1, -1]\n"), std::vector<std::string>{});
}

TEST(LoggedLists, OfMegatronByLayerAreTheOnesThatAreCaptured) {
  EXPECT_EQ(
      read("Rank 0: ORDER [1, -1]\n"
           "Rank 0: ORDER after overlap_moe_expert_parallel_comm [1, 2, -2, -2.5, -1, -1.5]\n"),
      "[1, 2, -2, -2.5, -1, -1.5]\n");
}

TEST(LoggedLists, OfMegatronAreOfAllStages) {
  EXPECT_EQ(read("Rank 0: ORDER [1, -1]\nRank 8: ORDER [1, -1]\nRank 24: ORDER [1, -1]\n"),
            "rank 24 has a line, and rank 16 has none @49");
  EXPECT_EQ(read("Rank 8: ORDER [1, -1]\nRank 16: ORDER [1, -1]\n"),
            "rank 8 has a line, and rank 0 has none @5");
  EXPECT_EQ(read("Rank 0: ORDER [1, -1]\nRank 0: ORDER [1, -1]\n"), "rank 0 has a second line @27");
  EXPECT_EQ(read("Rank 0: ORDER [1, -1\n"), "this bracket is never closed @14");
  EXPECT_EQ(read("order of Rank 0: [1, -1]"), "`order` is not a number @0");
}

TEST(ListsOfRanks, AreAListOfListsOrAListALine) {
  for (const char* text :
       {"[[1, 1, -1, -1], [1, -1]]", "[1, 1, -1, -1]\n[1, -1]\n", "[1, 1, -1, -1], [1, -1]",
        "[(1, 1, -1, -1), (1, -1)]", "((1, 1, -1, -1), (1, -1),)",
        "array([1, 1, -1, -1])\narray([1, -1])", "# rank 0\n[1, 1, -1, -1]\n# rank 1\n[1, -1]"}) {
    EXPECT_EQ(read(text), "[1, 1, -1, -1]\n[1, -1]\n") << text;
  }
  EXPECT_EQ(read("[[ 1.  -1.  -1.5]\n [ 1.  -1.  -1.5]]"),
            "[1.0, -1.0, -1.5]\n[1.0, -1.0, -1.5]\n");
  EXPECT_EQ(read("[[1, -1], []]"), "[1, -1]\n[]\n");
  EXPECT_EQ(read("[[]]"), "[]\n");
}

TEST(ListsOfRanks, MixAndDepthAreRefused) {
  EXPECT_EQ(read("[1, [2]]"), "a bracket inside the list @4");
  EXPECT_EQ(read("[[1], 2]"), "a number among the lists of ranks @6");
  EXPECT_EQ(read("[[[1]]]"), "a list inside the list of a rank @2");
  EXPECT_EQ(read("[1][2]"), "text after the end of the list @3");
  EXPECT_EQ(read("[1] 2"), "text after the end of the list @4");
  EXPECT_EQ(read("[[1, -1]"), "this bracket is never closed @0");
}

TEST(ListsOfRanks, StopAtTheLimitOfRanks) {
  EXPECT_EQ(read("[1]\n[1]", {.ranks = 2}), "[1]\n[1]\n");
  EXPECT_EQ(read("[1]\n[1]\n[1]", {.ranks = 2}), "the input has more than 2 ranks @9");
}

TEST(ListsOfRanks, AreNotOneList) {
  const auto one = read_te_list("[1, -1]\n[1, -1]", {});
  ASSERT_FALSE(one.has_value());
  EXPECT_EQ(one.error().finding.message, "a second list");
}

}  // namespace
}  // namespace capo
