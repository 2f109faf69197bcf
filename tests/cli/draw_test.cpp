// `capo draw` as a user runs it, and Python's XML parser on what comes out.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

class Draw : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("deadlock.csv",
                  "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  }

  // The words of a command line behind `capo draw`, split at blanks.
  [[nodiscard]] Outcome draw(const std::string& line) const {
    std::vector<std::string> arguments{"draw"};
    std::istringstream in(line);
    for (std::string word; in >> word;) arguments.push_back(word);
    return run_capo(arguments, {.directory = folder_.path()});
  }
  void generate(const std::string& name, const std::string& file) const {
    const Outcome made =
        run_capo({"generate", name, "--ranks", "4", "--microbatches", "8", "-o", file},
                 {.directory = folder_.path()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  [[nodiscard]] std::string text_of(const std::string& file) const {
    std::ifstream in(folder_.path() / file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  [[nodiscard]] bool exists(const std::string& file) const {
    return std::filesystem::exists(folder_.path() / file);
  }
  // Whether Python's parser takes the file for XML.
  [[nodiscard]] bool is_xml(const std::string& file) const {
    const std::string command =
        "python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' '" +
        (folder_.path() / file).string() + "'";
    return std::system(command.c_str()) == 0;
  }

  ScratchFolder folder_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST_F(Draw, EachActionOfASchedulesIsDrawnOnce) {
  struct Case {
    const char* name;
    std::size_t forwards;
    std::size_t weights;
  };
  for (const Case& each : {Case{"1f1b", 32, 0}, Case{"zbv", 64, 64}, Case{"dualpipev", 64, 0}}) {
    generate(each.name, "s.order");
    const Outcome outcome = draw("s.order --cost f=1,b=1,w=1,comm=0.1 -o s.svg");
    EXPECT_EQ(outcome.out, "");
    const std::string text = text_of("s.svg");
    EXPECT_TRUE(is_xml("s.svg")) << each.name;
    EXPECT_EQ(count(text, "<g class=\"task F\""), each.forwards) << each.name;
    EXPECT_EQ(count(text, "<g class=\"task B\""), each.forwards) << each.name;
    if (each.weights > 0) {
      EXPECT_EQ(count(text, "<g class=\"task W\""), each.weights) << each.name;
    }
    EXPECT_EQ(count(text, "class=\"verdict\""), 1U);
  }
}

TEST_F(Draw, LayersThatAreTakenApartStayOneAction) {
  folder_.write("one.te", "[1, 1, -1, -1.5, -1, -1.5]");
  const Outcome outcome =
      draw("one.te --ep-overlap --cost dispatch=0.5,combine=0.5 -o one.svg --no-weight-stream");
  EXPECT_TRUE(exists("one.svg")) << outcome.err;
  const std::string text = text_of("one.svg");
  EXPECT_EQ(count(text, "<g class=\"task F\""), 2U);
  EXPECT_EQ(count(text, "<g class=\"task B\""), 2U);
  EXPECT_EQ(count(text, "<g class=\"task W\""), 2U);
  EXPECT_GE(count(text, "<g class=\"collective dispatch\""), 2U);
}

TEST_F(Draw, AnEndingMayBeInCapitals) {
  EXPECT_EQ(draw("--order 1,-1 -o A.SVG").exit_code, 0);
  EXPECT_TRUE(is_xml("A.SVG"));
  EXPECT_EQ(draw("--order 1,-1 -o a.Txt --color never").exit_code, 0);
  EXPECT_TRUE(holds(text_of("a.Txt"), "accepted\n"));
}

TEST_F(Draw, TheExitCodeIsTheVerdicts) {
  EXPECT_EQ(draw("--order 1,-1 -o a.svg").exit_code, 0);
  EXPECT_TRUE(holds(text_of("a.svg"), ">accepted</text>"));
  EXPECT_EQ(draw("--order 1,-1,1,-1.5,-1,-1.5 --plan te --modules linear -o b.svg").exit_code, 1);
  const std::string hazard = text_of("b.svg");
  EXPECT_TRUE(holds(hazard, "error[B01]: `-1.5` at index 3 reads the static input"));
  EXPECT_TRUE(holds(hazard, "B01 it is read here"));
  EXPECT_TRUE(holds(hazard, "makespan")) << "a hazard changes no times";
}

TEST_F(Draw, ADeadlockIsDrawnWithItsRing) {
  EXPECT_EQ(draw("deadlock.csv -o d.svg").exit_code, 1);
  const std::string text = text_of("d.svg");
  EXPECT_TRUE(is_xml("d.svg"));
  EXPECT_TRUE(holds(text, "error[T09]: deadlock"));
  EXPECT_EQ(count(text, "marker-end=\"url(#alarm-head)\""), 4U);
  EXPECT_TRUE(holds(text, "without times, each entry at its index: its transfers wait"));
  EXPECT_EQ(count(text, "<g class=\"transfer send\""), 4U);
}

TEST_F(Draw, AnOrderOfBrokenShapeIsDrawnAsFarAsItGoes) {
  EXPECT_EQ(draw("--order 1,2,-1,-1 -o s.svg").exit_code, 1);
  const std::string text = text_of("s.svg");
  EXPECT_TRUE(is_xml("s.svg"));
  EXPECT_TRUE(holds(text, "error[S15]"));
  EXPECT_EQ(count(text, "<g class=\"task "), 4U);
}

TEST_F(Draw, TheFormatFollowsTheEndingOrTheFlag) {
  EXPECT_EQ(draw("--order 1,-1 -o a.json").exit_code, 0);
  const auto trace = nlohmann::json::parse(text_of("a.json"));
  EXPECT_EQ(trace["otherData"]["verdict"], "accepted");
  EXPECT_FALSE(trace["traceEvents"].empty());
  EXPECT_EQ(draw("--order 1,-1 -o a.txt").exit_code, 0);
  EXPECT_TRUE(text_of("a.txt").starts_with("rank 0 |F0")) << text_of("a.txt");
  EXPECT_TRUE(holds(text_of("a.txt"), "\naccepted\n"));
  const Outcome shown = draw("--order 1,-1 --format svg -o -");
  EXPECT_TRUE(shown.out.starts_with("<svg "));
  EXPECT_EQ(draw("--order 1,-1 --format txt -o any.thing").exit_code, 0);
  EXPECT_TRUE(text_of("any.thing").starts_with("rank 0 |"));
}

TEST_F(Draw, AGridIsAsWideAsAskedAndColouredIfAsked) {
  const std::string order = "--order 1,-1 --format txt -o - ";
  const std::string plain = draw(order).out;
  EXPECT_EQ(plain.find('\n'), 100U) << plain;
  EXPECT_FALSE(holds(plain, "\x1b")) << "a pipe is no terminal";
  EXPECT_EQ(draw(order + "--width 40").out.find('\n'), 40U);
  EXPECT_TRUE(holds(draw(order + "--color always").out, "\x1b[34mF0"));
  EXPECT_FALSE(holds(draw(order + "--color never").out, "\x1b"));
  EXPECT_TRUE(holds(draw("--order 1,-1 -o a.svg --width 40").err, "--width: is for txt"));
  EXPECT_TRUE(holds(draw("--order 1,-1 -o a.svg --color always").err, "--color: is for txt"));
}

TEST_F(Draw, ALongStepIsFoldedIfAsked) {
  generate("zbv", "s.order");
  EXPECT_EQ(draw("s.order -o wide.svg").exit_code, 0);
  EXPECT_EQ(draw("s.order -o folded.svg --fold --paper").exit_code, 0);
  EXPECT_TRUE(is_xml("folded.svg"));
  EXPECT_EQ(count(text_of("folded.svg"), "<g class=\"task "),
            count(text_of("wide.svg"), "<g class=\"task "));
  EXPECT_GT(count(text_of("folded.svg"), ">rank 0</text>"), 1U) << "each line has its names";
  EXPECT_EQ(count(text_of("wide.svg"), ">rank 0</text>"), 1U);
  EXPECT_EQ(draw("s.order -o a.html --fold").exit_code, 2);
}

TEST_F(Draw, AChosenTaskHasArrowsToWhatItWaitsForAndWhoWaitsForIt) {
  generate("1f1b", "s.order");
  const Outcome outcome = run_capo({"draw", "s.order", "--cost", "comm=0.5", "--task",
                                    "rank 2 B1.0", "--no-path", "-o", "s.svg"},
                                   {.directory = folder_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(count(text_of("s.svg"), "<path class=\"chosen\""), 2U) << "its receive and its send";
  EXPECT_TRUE(holds(text_of("s.svg"), ">waits of B1.0 of rank 2</text>"));
  const Outcome none = run_capo({"draw", "s.order", "--task", "rank 9 B1.0", "-o", "s.svg"},
                                {.directory = folder_.path()});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(holds(none.err, "rank 9 has no task `B1.0`")) << none.err;
}

// Of the list that TransformerEngine's pull request would have with one entry wrong.
TEST_F(Draw, ASlipIsDrawnInsteadOfWhatFollowsFromIt) {
  const std::string broken = CAPO_SOURCE_DIR "/examples/te2376/broken.te ";
  EXPECT_EQ(draw(broken + "-o slip.svg").exit_code, 1);
  EXPECT_EQ(draw(broken + "-o all.svg --all").exit_code, 1);
  EXPECT_TRUE(holds(text_of("slip.svg"), "`-1` at index 62 is probably `-2`</text>"));
  EXPECT_FALSE(holds(text_of("all.svg"), "index 62 is probably"));
  EXPECT_TRUE(holds(text_of("all.svg"), "error[S15]: `-1` at index 70"));
}

TEST_F(Draw, AFormatThatThereIsNotIsAUsageError) {
  for (const char* file : {"a.png", "a", "-"}) {
    const Outcome outcome = draw(std::string("--order 1,-1 -o ") + file);
    EXPECT_EQ(outcome.exit_code, 2) << file;
    EXPECT_TRUE(holds(outcome.err, ".svg, .pdf, .html, .pftrace, .json, .txt")) << outcome.err;
  }
  EXPECT_EQ(draw("--order 1,-1").exit_code, 2);
  EXPECT_EQ(draw("--order 1,-1 -o a.txt --paper").exit_code, 2);
  EXPECT_EQ(draw("--order 1,-1 -o a.txt --no-path").exit_code, 2);
  EXPECT_FALSE(exists("a.txt"));
}

TEST_F(Draw, TwoOrdersShareAnAxis) {
  generate("1f1b", "a.order");
  generate("zbv", "b.order");
  EXPECT_EQ(draw("a.order --against b.order --cost f=1,b=1,w=1 -o ab.svg").exit_code, 0);
  EXPECT_TRUE(is_xml("ab.svg"));
  const std::string text = text_of("ab.svg");
  EXPECT_EQ(count(text, "class=\"verdict\""), 2U);
  EXPECT_EQ(count(text, "<g class=\"task F\""), 32U + 64U);
  EXPECT_EQ(count(text, "F forward"), 1U) << "one legend";
  EXPECT_TRUE(holds(text, ">a.order</text>"));
  EXPECT_TRUE(holds(text, ">b.order</text>"));
  EXPECT_EQ(draw("a.order --against none.order -o no.svg").exit_code, 3);
  EXPECT_FALSE(exists("no.svg"));
  for (const char* format : {"json", "txt", "pftrace"}) {
    EXPECT_EQ(draw(std::string("a.order --against b.order -o x.") + format).exit_code, 2) << format;
  }
}

TEST_F(Draw, AMeasuredTimelineIsDrawnAsAnOrderIs) {
  folder_.write("one.te", "[1, 1, -1, -1]");
  const Outcome run = run_capo({"run", "one.te", "--modules", "linear", "-o", "measured.json"},
                               {.directory = folder_.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(draw("measured.json -o m.svg").exit_code, 0);
  const std::string text = text_of("m.svg");
  EXPECT_TRUE(is_xml("m.svg"));
  EXPECT_EQ(count(text, "<g class=\"task F\""), 2U);
  EXPECT_EQ(count(text, "<g class=\"task B\""), 2U);
  EXPECT_TRUE(holds(text, ">accepted</text>"));
  EXPECT_TRUE(holds(text, "measured: host engine"));
  EXPECT_TRUE(holds(text, "microseconds"));
  EXPECT_EQ(draw("one.te --against measured.json -o both.html").exit_code, 0);
  EXPECT_TRUE(holds(text_of("both.html"), "every gradient is equal to eager execution"));
  EXPECT_EQ(draw("measured.json -o again.json").exit_code, 0);
  EXPECT_EQ(text_of("again.json"), text_of("measured.json"));
  folder_.write("bad.json", R"({"schema": "capo.timeline/1"})");
  EXPECT_EQ(draw("bad.json -o bad.svg").exit_code, 3);
}

TEST_F(Draw, ATraceOfTorchStandsBelowItsPrediction) {
  folder_.write("trace.json", R"({"traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "pid": 3, "ts": 50, "dur": 4},
      {"ph": "X", "cat": "user_annotation", "name": "PP:0B0", "pid": 3, "ts": 60, "dur": 9},
      {"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "pid": 3, "ts": 150, "dur": 4},
      {"ph": "X", "cat": "user_annotation", "name": "PP:0B0", "pid": 3, "ts": 160, "dur": 8}]})");
  EXPECT_EQ(draw("--order 1,-1 --cost f=4,b=4,w=4 --against trace.json -o s.svg").exit_code, 0);
  const std::string text = text_of("s.svg");
  EXPECT_TRUE(is_xml("s.svg"));
  EXPECT_EQ(count(text, "<g class=\"task "), 4U) << "the last step of the trace, and the order";
  EXPECT_EQ(count(text, "class=\"verdict\""), 2U);
  EXPECT_TRUE(holds(text, ">measured by torch, not judged</text>"));
  EXPECT_TRUE(holds(text, "B1.0 of rank 0: from 10 us to 18 us, 8 us long"));
  EXPECT_EQ(draw("trace.json -o alone.html").exit_code, 0);
}

// A step of one stage a rank in the form of torch.profiler, whose forward begins at `begin`; rank 0
// waits.
std::string trace_of_rank(int rank, int begin, const std::string& info) {
  std::string text = "{" + info + R"("traceEvents": [)";
  for (const char* name : {"F0", "B0"}) {
    text += R"({"ph": "X", "cat": "gpu_user_annotation", "pid": 0, "dur": 8, "ts": )" +
            std::to_string(begin) + R"(, "name": "PP:)" + std::to_string(rank) + name + "\"}";
    text += name == std::string("F0") ? ", " : "]}";
    begin += rank == 0 ? 40 : 10;
  }
  return text;
}

std::string trace_that_says(int rank, int begin) {
  return trace_of_rank(rank, begin,
                       R"("distributedInfo": {"rank": )" + std::to_string(rank) + "}, ");
}

TEST_F(Draw, TracesOfRanksAreOnePictureBelowTheOrder) {
  folder_.write("a.order", "capo 1\nplacement loop\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  folder_.write("r0.json", trace_that_says(0, 100));
  folder_.write("r1.json", trace_that_says(1, 103));
  const std::string command = "a.order --cost f=4,b=4,w=4 --against r1.json --against r0.json -o ";
  EXPECT_EQ(draw(command + "s.svg").exit_code, 0);
  const std::string text = text_of("s.svg");
  EXPECT_TRUE(is_xml("s.svg"));
  EXPECT_EQ(count(text, "<g class=\"task "), 8U);
  EXPECT_EQ(count(text, "class=\"verdict\""), 2U);
  EXPECT_TRUE(holds(text, ">r1.json and 1 other trace</text>"));
  EXPECT_TRUE(holds(text, "rank 1 by 5.0 us"));
  EXPECT_TRUE(holds(text, "F1.0 of rank 1: from 8 us to 16 us"));
  EXPECT_EQ(draw(command + "s.html").exit_code, 0);
}

TEST_F(Draw, ATraceOfARankThatIsTakenOrThatTheOrderLacksIsSaid) {
  folder_.write("a.order", "capo 1\nplacement loop\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  folder_.write("r0.json", trace_that_says(0, 100));
  folder_.write("r1.json", trace_that_says(1, 103));
  folder_.write("r2.json", trace_that_says(2, 103));
  folder_.write("silent.json", trace_of_rank(1, 103, ""));
  const auto error_of = [&](const std::string& flags) {
    const Outcome outcome = draw("a.order " + flags + " -o s.svg");
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_FALSE(exists("s.svg"));
    return outcome.err;
  };
  EXPECT_TRUE(holds(error_of("--against r1.json --against r1.json"),
                    "r1.json and r1.json are both of rank 1"));
  EXPECT_TRUE(holds(error_of("--against r1.json --against silent.json"),
                    "r1.json and silent.json are both of rank 1, where a file says none and its "
                    "place in the list does"));
  EXPECT_TRUE(holds(error_of("--against r0.json --against r2.json"),
                    "r2.json is of rank 2, and a.order has 2 ranks"));
  EXPECT_TRUE(
      holds(error_of("--against r2.json"), "r2.json is of rank 2, and a.order has 2 ranks"));
  EXPECT_TRUE(holds(error_of("--against r0.json --against a.order"),
                    "a.order is no trace of torch.profiler; several files are such traces, a rank "
                    "each"));
  EXPECT_EQ(draw("r0.json --against r2.json -o two.svg").exit_code, 0) << "no order, no ranks";
  EXPECT_TRUE(holds(text_of("two.svg"), "no trace of rank 0, 1"));
  EXPECT_EQ(draw("--against r0.json --against silent.json a.order -o places.svg").exit_code, 0);
  EXPECT_EQ(draw("a.order --against r0.json --against none.json -o s.svg").exit_code, 3);
}

TEST_F(Draw, PerfettosTraceIsBytesThatBeginWithAPacket) {
  EXPECT_EQ(draw("--order 1,-1 -o a.pftrace").exit_code, 0);
  EXPECT_EQ(text_of("a.pftrace").substr(0, 1), "\n") << "field 1, of a length";
  EXPECT_TRUE(holds(text_of("a.pftrace"), "F1.0"));
  EXPECT_TRUE(holds(text_of("a.pftrace"), "accepted"));
}

TEST_F(Draw, WhatCannotBeReadIsNotDrawn) {
  EXPECT_EQ(draw("none.te -o a.svg").exit_code, 3);
  folder_.write("bad.te", "[1, x");
  EXPECT_EQ(draw("bad.te -o a.svg").exit_code, 3);
  EXPECT_FALSE(exists("a.svg"));
}

TEST_F(Draw, TooManyTasksNameTheFlag) {
  EXPECT_EQ(draw("--order 1,-1 -o a.svg --max-tasks 2").exit_code, 0);
  const Outcome outcome = draw("--order 1,-1 -o b.svg --max-tasks 1");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_TRUE(holds(outcome.err, "--max-tasks")) << outcome.err;
  EXPECT_FALSE(exists("b.svg"));
}

// A machine may have the program or not, and a search path without it never has.
TEST_F(Draw, PdfNeedsAProgramWhosePackageIsNamed) {
  const std::string line = "cd '" + folder_.path().string() + "' && PATH=/nowhere '" +
                           CAPO_EXECUTABLE + "' draw --order 1,-1 -o a.pdf 2>err.txt";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_TRUE(holds(text_of("err.txt"), "librsvg2-bin")) << text_of("err.txt");
  EXPECT_FALSE(exists("a.pdf"));
}

TEST_F(Draw, PdfIsOnePage) {
  const Outcome outcome = draw("--order 1,-1 --paper -o a.pdf");
  if (outcome.exit_code == 5 && holds(outcome.err, "librsvg2-bin")) {
    GTEST_SKIP() << "rsvg-convert is not installed";
  }
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string text = text_of("a.pdf");
  EXPECT_TRUE(text.starts_with("%PDF-"));
  if (std::system("command -v pdfinfo >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "pdfinfo, of poppler-utils, is not installed";
  }
  const std::string command = "pdfinfo '" + (folder_.path() / "a.pdf").string() + "' >'" +
                              (folder_.path() / "info").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string info = text_of("info");
  EXPECT_TRUE(holds(info, "Pages:           1\n")) << info;
  EXPECT_TRUE(holds(info, "Page size:       240.9")) << "85 mm in points; " << info;
}

TEST_F(Draw, TimesOfAnySizeAreDrawn) {
  for (const char* cost : {"f=1e-9,b=1e-9,w=1e-9", "f=1e9,b=1e9,w=1e9", "f=0,b=0,w=0"}) {
    EXPECT_EQ(draw(std::string("--order 1,1,-1,-1 -o a.svg --cost ") + cost).exit_code, 0) << cost;
    EXPECT_TRUE(is_xml("a.svg"));
    EXPECT_EQ(count(text_of("a.svg"), "<g class=\"task "), 4U) << cost;
  }
}

}  // namespace
}  // namespace capo
