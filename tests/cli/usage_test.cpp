// The command line itself: help, version, and what is said to one who gets it wrong. Exit code 2,
// nothing on standard output, and on standard error the word that was not understood and where help
// is.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

const std::vector<std::string> kCommands{"check",    "convert",   "generate", "simulate", "compare",
                                         "sweep",    "optimise",  "run",      "graph",    "draw",
                                         "minimise", "explain",   "rules",    "devices",  "help",
                                         "man",      "completion"};

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void expect_usage_error(const Outcome& outcome, const std::string& culprit) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(holds(outcome.err, culprit)) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, "--help") || holds(outcome.err, "help: ")) << outcome.err;
}

// --- help ---------------------------------------------------------------------------------------

TEST(Help, ListsTheCommandsAndTheExitCodes) {
  const Outcome outcome = run_capo({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const std::string& command : kCommands)
    EXPECT_TRUE(holds(outcome.out, "\n  " + command + " ")) << command;
  for (const char* code :
       {"0 accepted", "1 findings", "2 usage", "3 malformed", "4 no verdict", "5 environment"}) {
    EXPECT_TRUE(holds(outcome.out, code)) << code;
  }
}

TEST(Help, OfACommandEndsWithAnExample) {
  for (const std::string& command : kCommands) {
    for (const char* flag : {"--help", "-h"}) {
      SCOPED_TRACE(command + " " + flag);
      const Outcome outcome = run_capo({command, flag});
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_EQ(outcome.err, "");
      EXPECT_TRUE(last_line(outcome.out).starts_with("Example: capo " + command))
          << last_line(outcome.out);
    }
  }
}

// An example that does not work is worse than none.
TEST(Help, TheExampleOfCheckWorks) {
  EXPECT_TRUE(holds(run_capo({"check", "--help"}).out,
                    "Example: capo check --order \"[1, 2, -1, -1]\" --profile sound,te"));
  const Outcome outcome = run_capo({"check", "--order", "[1, 2, -1, -1]", "--profile", "sound,te"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "profile te: ")) << outcome.out;
}

TEST(Help, NamesEveryOption) {
  const std::string help = run_capo({"check", "--help"}).out;
  for (const char* option : {"FILE",
                             "--order",
                             "--form",
                             "--layers-per-chunk",
                             "--delayed",
                             "--microbatches",
                             "--stages",
                             "--stage-to-rank",
                             "--csv",
                             "--batch",
                             "--profile",
                             "--format",
                             "--color",
                             "--max-findings",
                             "--max-bytes",
                             "--max-entries",
                             "--max-ranks",
                             "--max-count",
                             "--max-depth",
                             "--te-reuse",
                             "--te-silent-store",
                             "--max-graphs",
                             "--pp",
                             "--vp",
                             "--group-size",
                             "--ep-overlap"}) {
    EXPECT_TRUE(holds(help, std::string("  ") + option + " ")) << option;
  }
}

TEST(Version, NamesTheUpstreamCommits) {
  const Outcome outcome = run_capo({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("capo ")) << outcome.out;
  for (const char* upstream : {"te 2.20", "mcore d98e8a64dd", "torch 2.15"}) {
    EXPECT_TRUE(holds(outcome.out, upstream)) << upstream;
  }
}

// --- mistakes -----------------------------------------------------------------------------------

TEST(Usage, AnUnknownCommandIsNamed) {
  expect_usage_error(run_capo({"chek"}), "chek");
  expect_usage_error(run_capo({"chek", "--order", "[1, -1]"}), "chek");
}

TEST(Usage, AnUnknownOptionIsNamed) {
  for (const std::string& command : kCommands) {
    SCOPED_TRACE(command);
    expect_usage_error(run_capo({command, "--no-such-option"}), "--no-such-option");
  }
  expect_usage_error(run_capo({"--no-such-option"}), "--no-such-option");
  expect_usage_error(run_capo({"check", "--order", "[1, -1]", "--ordr"}), "--ordr");
  expect_usage_error(run_capo({"check", "-x"}), "-x");
}

TEST(Usage, AValueOutsideItsListIsNamed) {
  const std::vector<std::pair<std::string, std::string>> values{{"--form", "yaml"},
                                                                {"--format", "xml"},
                                                                {"--color", "blue"},
                                                                {"--csv", "both"},
                                                                {"--profile", "jax"}};
  for (const auto& [option, value] : values) {
    SCOPED_TRACE(option);
    const Outcome outcome = run_capo({"check", "--order", "[1, -1]", option, value});
    expect_usage_error(outcome, option);
    EXPECT_TRUE(holds(outcome.err, value)) << outcome.err;
  }
  expect_usage_error(run_capo({"check", "--order", "[1, -1]", "--profile", "te,jax"}), "jax");
  expect_usage_error(run_capo({"convert", "--order", "[1, -1]", "--to", "yaml"}), "yaml");
}

TEST(Usage, AnOptionNeedsItsValue) {
  for (const char* option :
       {"--order", "--form", "--format", "--profile", "--batch", "--max-bytes"}) {
    SCOPED_TRACE(option);
    expect_usage_error(run_capo({"check", option}), option);
  }
  expect_usage_error(run_capo({"convert", "--order", "[1, -1]", "--to"}), "--to");
}

TEST(Usage, AnInputIsNeededAndOneIsEnough) {
  expect_usage_error(run_capo({"check"}), "no input");
  expect_usage_error(run_capo({"convert", "--to", "te"}), "no input");
  expect_usage_error(run_capo({"check", "a.order", "--order", "[1, -1]"}), "--order");
  expect_usage_error(run_capo({"convert", "--to", "te", "a.order", "b.order"}), "b.order");
  expect_usage_error(run_capo({"check", "--order", "[1, -1]", "--order", "[1, -1]"}), "--order");
}

TEST(Usage, ConvertNeedsItsTarget) {
  expect_usage_error(run_capo({"convert", "--order", "[1, -1]"}), "--to");
}

TEST(Usage, ExplainNeedsARuleThatExists) {
  expect_usage_error(run_capo({"explain"}), "the id or name of a rule");
  expect_usage_error(run_capo({"explain", "S99"}), "S99");
  const Outcome close = run_capo({"explain", "not-finit"});
  expect_usage_error(close, "not-finit");
  EXPECT_TRUE(holds(close.err, "did you mean `not-finite`?")) << close.err;
  expect_usage_error(run_capo({"explain", "zzzzzzzzzzzzzzzzz"}), "`capo rules` lists them");
}

// A number's bound is a number that one can read.
TEST(Usage, AnOutOfRangeNumberIsExplainedInOneLine) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"convert", "--order", "[1, -1]", "--to", "te", "--rank=-1"},
           {"check", "--order", "[1, -1]", "--microbatches=0"},
           {"check", "--order", "[1, -1]", "--max-bytes=0"}}) {
    const Outcome outcome = run_capo(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_LT(outcome.err.size(), 200U) << outcome.err;
  }
}

// However long an argument is, and wherever in it stands what is wrong.
TEST(Usage, ALongArgumentIsNotEchoedWhole) {
  const std::string nines(300, '9');
  const std::vector<std::string> check{"check", "--order", "[1, -1]"};
  const std::vector<std::string> sweep{"sweep", "1f1b", "--ranks", "4", "--microbatches", "8"};
  const std::vector<std::string> generate{"generate", "zb-1p", "--ranks", "2"};
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> lines{
      {check, {"--microbatches", nines}},
      {check, {"--max-bytes=" + nines}},
      {check, {"--format", nines}},
      {check, {"--format=" + nines}},
      {check, {"--delayed", "1," + nines}},
      {check, {"--ep-overlap", "--ep-slots", "mtp," + nines}},
      {check, {"--profile", "te," + nines}},
      {check, {"--" + nines}},
      {{"convert", "a.te"}, {nines}},
      {sweep, {"--memory", nines + "x"}},
      {sweep, {"--memory=4," + nines + "x"}},
      {sweep, {"--cost", "f=" + nines + "x"}},
      {sweep, {nines}},
      {generate, {"--cost=f=1,b=" + nines + "x"}},
      {generate, {"--mem=f=" + nines + "x"}},
      {{"generate", nines}, {}},
      {{"simulate", "--order", "[1, -1]"}, {"--width", nines}},
      {{"simulate", "--order", "[1, -1]"}, {"--devices", nines}},
      {{"run", "--order", "[1, -1]"}, {"--seed", nines}},
      {{"minimise", "--order", "[1, -1]"}, {"--rule", nines}},
  };
  for (const auto& [command, more] : lines) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), more.begin(), more.end());
    SCOPED_TRACE(arguments.front() + " " + arguments.back().substr(0, 20));
    const Outcome outcome = run_capo(arguments);
    expect_usage_error(outcome, "...");
    EXPECT_LT(outcome.err.size(), 450U) << outcome.err;
  }
}

// --- explain, rules, devices --------------------------------------------------------------------

TEST(ExplainCommand, TakesAnIdOrAName) {
  const Outcome by_id = run_capo({"explain", "I01"});
  EXPECT_EQ(by_id.exit_code, 0) << by_id.err;
  EXPECT_FALSE(by_id.out.empty());
  EXPECT_EQ(run_capo({"explain", "malformed"}).out, by_id.out);
}

TEST(RulesCommand, AreListedAsTextAndAsAPage) {
  const Outcome text = run_capo({"rules"});
  EXPECT_EQ(text.exit_code, 0);
  const Outcome page = run_capo({"rules", "--markdown"});
  EXPECT_EQ(page.exit_code, 0);
  for (const char* rule : {"I01", "I02", "S01", "S24", "D01", "P02"}) {
    EXPECT_TRUE(holds(text.out, rule)) << rule;
    EXPECT_TRUE(holds(page.out, rule)) << rule;
  }
}

TEST(DevicesCommand, AreListedOrTheReasonIsSaid) {
  const Outcome outcome = run_capo({"devices"});
  EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 5) << outcome.exit_code;
  EXPECT_EQ(outcome.exit_code == 0, outcome.err.empty()) << outcome.err;
  if (outcome.exit_code == 5) {
    EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
  }
}

}  // namespace
}  // namespace capo
