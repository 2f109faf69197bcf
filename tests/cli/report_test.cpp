// What `capo check` prints: text, its colour, JSON and SARIF.

#include "tests/support/check_order.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::check_order;
using testing_support::holds;
using testing_support::keys_of;
using testing_support::Outcome;
using testing_support::report_of;
using testing_support::run_capo;
using testing_support::RunOptions;

// --- text ---------------------------------------------------------------------------------------

TEST(CheckText, AnAcceptedOrderSaysUnderWhatAssumptions) {
  EXPECT_EQ(check_order("[1, 2, -2, -1]").out,
            "accepted\n"
            "  1 rank, 2 chunks, 1 microbatch, topology independent, no plan, no modules\n"
            "  not declared: chunks, layers_per_chunk, delayed, microbatches, topology; "
            "`--explain-model` says what is taken\n");
}

TEST(CheckText, ARejectedOrderShowsThePlaceTheCureAndTheRule) {
  EXPECT_EQ(
      check_order("[1, nan, -1]").out,
      "error[S01]: `nan` at index 1 is not a number\n"
      " --> <order>:1:5\n"
      "  |\n"
      "1 | [1, nan, -1]\n"
      "  |     ^^^\n"
      "  |\n"
      "  = help: write the chunk that runs here; is a value missing where the list was made?\n"
      "\n"
      "not checked before these are cured: counts, order, placement\n"
      "\n"
      "rejected: 1 error; `capo explain S01` tells more\n"
      "  1 rank, 1 chunk, 1 microbatch, topology independent, no plan, no modules\n"
      "  not declared: chunks, layers_per_chunk, delayed, microbatches, topology; "
      "`--explain-model` says what is taken\n");
}

TEST(CheckText, ARefusedInputSaysThatThereIsNoVerdict) {
  EXPECT_EQ(check_order("[1, -1").out,
            "error[I01]: this bracket is never closed\n"
            " --> <order>:1:1\n"
            "  |\n"
            "1 | [1, -1\n"
            "  | ^\n"
            "  |\n"
            "  = help: end the list with `]`; is the input cut short?\n"
            "\n"
            "no verdict\n");
}

// Columns count bytes, but the mark stands under the character that the reader sees.
TEST(CheckText, TheMarkStandsUnderItsPlace) {
  const Outcome outcome = check_order("[1, -1 (é) x]");
  EXPECT_TRUE(holds(outcome.out, "1 | [1, -1 (é) x]\n  |            ^\n")) << outcome.out;
}

TEST(CheckText, ASecondSameStatementIsNotCorrectedToItself) {
  const Outcome outcome = check_order("capo 1\ncapo 1\nrank 0: F1 B1\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_FALSE(holds(outcome.out, "did you mean `capo`?")) << outcome.out;
}

TEST(CheckText, ALongCircleIsCutAndSaysSo) {
  const Outcome order = run_capo({"generate", "megatron", "--pp", "16", "--vp", "2",
                                  "--microbatches", "16", "--rank", "all", "--format", "order"});
  const Outcome text =
      run_capo({"check", "-", "--form", "order", "--p2p", "flush"}, {.input = order.out});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.out.find(" more places; --format json names them all"), std::string::npos)
      << text.out;
  const Outcome whole =
      run_capo({"check", "-", "--form", "order", "--p2p", "flush", "--format", "json"},
               {.input = order.out});
  EXPECT_GT(json::parse(whole.out).at("diagnostics").at(0).at("witness").at("tasks").size(), 24u);
}

// An order that is rejected is explained by an error, though a warning stands before it.
TEST(CheckText, TheRuleToReadAboutIsOneThatDecides) {
  const Outcome outcome = check_order("[1, 2, -2, -1, -1]", {"--layers-per-chunk", "[0, 1]"});
  ASSERT_EQ(outcome.exit_code, 1) << outcome.out;
  const std::size_t error = outcome.out.find("error[");
  ASSERT_LT(outcome.out.find("warning[S18]"), error) << outcome.out;
  ASSERT_LT(error, outcome.out.size());
  const std::string rule = outcome.out.substr(error + 6, 3);
  EXPECT_NE(rule, "S18");
  EXPECT_TRUE(holds(outcome.out, "; `capo explain " + rule + "` tells more")) << outcome.out;
}

// --- colour -------------------------------------------------------------------------------------

bool coloured(const std::string& text) {
  return holds(text, "\x1b[");
}

TEST(CheckColour, IsOffIntoAPipeAndOnWhereAskedFor) {
  EXPECT_FALSE(coloured(check_order("[1, -1").out));
  EXPECT_FALSE(coloured(check_order("[1, -1", {"--color", "auto"}).out));
  EXPECT_FALSE(coloured(check_order("[1, -1", {"--color", "never"}).out));
  EXPECT_TRUE(coloured(check_order("[1, -1", {"--color", "always"}).out));
}

TEST(CheckColour, AlwaysIsStrongerThanTheEnvironment) {
  for (const char* setting : {"NO_COLOR=1", "TERM=dumb"}) {
    const Outcome outcome =
        run_capo({"check", "--order", "[1, -1", "--color", "always"}, {.environment = {setting}});
    EXPECT_TRUE(coloured(outcome.out)) << setting;
  }
}

TEST(CheckColour, StaysOutOfJsonAndSarif) {
  EXPECT_FALSE(coloured(check_order("[1, -1", {"--color", "always", "--format", "json"}).out));
  EXPECT_FALSE(coloured(check_order("[1, -1", {"--color", "always", "--format", "sarif"}).out));
}

TEST(CheckColour, TheWordsAreTheSame) {
  std::string text = check_order("[1, nan, 0]", {"--color", "always", "--profile", "te"}).out;
  for (std::size_t at = text.find("\x1b["); at != std::string::npos; at = text.find("\x1b[", at)) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  EXPECT_EQ(text, check_order("[1, nan, 0]", {"--color", "never", "--profile", "te"}).out);
}

// What capo prints to a terminal; nothing where there is no pseudo-terminal to be had.
std::string on_a_terminal(const std::vector<std::string>& environment) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "";
  const std::string name = ::ptsname(terminal);
  const int keep_open = ::open(name.c_str(), O_RDWR | O_NOCTTY);
  RunOptions options{.environment = environment, .stdout_path = name};
  const Outcome outcome = run_capo({"check", "--order", "[1, -1"}, options);
  EXPECT_EQ(outcome.exit_code, 3);
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(terminal, buffer.data(), buffer.size());
  ::close(keep_open);
  ::close(terminal);
  return std::string(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
}

TEST(CheckColour, OnATerminalFollowsTheEnvironment) {
  const std::string plain = on_a_terminal({"NO_COLOR=1", "TERM=xterm"});
  if (plain.empty()) GTEST_SKIP() << "there is no pseudo-terminal";
  EXPECT_FALSE(coloured(plain));
  EXPECT_TRUE(coloured(on_a_terminal({"NO_COLOR=", "TERM=xterm"})));
  EXPECT_FALSE(coloured(on_a_terminal({"NO_COLOR=", "TERM=dumb"})));
}

// --- JSON ---------------------------------------------------------------------------------------

TEST(CheckJson, HoldsTheFieldsOfTheContract) {
  const json report = report_of("[1, 1, 2, -2, -1, -1, -1]", {"--profile", "te,mcore,torch"});
  EXPECT_EQ(report.at("schema"), 1);
  EXPECT_EQ(report.at("verdict"), "rejected");
  EXPECT_EQ(keys_of(report),
            (std::set<std::string>{"schema", "verdict", "environment", "finishes", "diagnostics",
                                   "hazards", "victims", "slots", "bytes", "transfer_buffers",
                                   "undeclared", "findings", "skipped", "profiles"}));
  EXPECT_EQ(
      keys_of(report.at("environment")),
      (std::set<std::string>{"topology", "plan", "modules", "ranks", "chunks", "microbatches",
                             "layers_per_chunk", "delayed", "communicators", "transfers", "p2p",
                             "ep_overlap", "weight_stream", "collective_groups", "assumed"}));
  ASSERT_FALSE(report.at("diagnostics").empty());
  for (const json& diagnostic : report.at("diagnostics")) {
    EXPECT_EQ(keys_of(diagnostic),
              (std::set<std::string>{"rule", "name", "family", "severity", "message", "spans",
                                     "notes", "help", "witness"}));
    EXPECT_EQ(diagnostic.at("severity"), "error");
    EXPECT_TRUE(diagnostic.at("message").is_string());
    EXPECT_TRUE(diagnostic.at("notes").is_array());
    EXPECT_EQ(keys_of(diagnostic.at("witness")), (std::set<std::string>{"kind", "tasks"}));
    for (const json& span : diagnostic.at("spans")) {
      for (const char* key : {"source", "line", "column", "offset", "length"})
        EXPECT_TRUE(span.contains(key)) << span;
      EXPECT_EQ(span.at("source"), "<order>");
    }
    for (const json& task : diagnostic.at("witness").at("tasks")) {
      EXPECT_EQ(keys_of(task), (std::set<std::string>{"rank", "index", "text", "action"}));
    }
    if (!diagnostic.at("help").is_null()) {
      EXPECT_EQ(keys_of(diagnostic.at("help")), (std::set<std::string>{"text", "edits"}));
    }
  }
  EXPECT_EQ(keys_of(report.at("profiles")), (std::set<std::string>{"te", "mcore", "torch"}));
  for (const char* profile : {"te", "mcore", "torch"}) {
    for (const char* key : {"accepts", "error_kind", "reason", "disagreement"}) {
      EXPECT_TRUE(report.at("profiles").at(profile).contains(key)) << profile << " " << key;
    }
  }
}

TEST(CheckJson, TellsAPlaceInBytesFromOne) {
  const json report = report_of("[1,\n -1 (é) x]");
  const json span = report.at("diagnostics").at(0).at("spans").at(0);
  EXPECT_EQ(span.at("line"), 2);
  EXPECT_EQ(span.at("column"), 10);
  EXPECT_EQ(span.at("offset"), 13);
  EXPECT_EQ(span.at("length"), 1);
}

TEST(CheckJson, ARefusedInputHasNoEnvironment) {
  const json report = report_of("[1, -1");
  EXPECT_EQ(report.at("verdict"), "no-verdict");
  EXPECT_TRUE(report.at("environment").is_null());
  EXPECT_EQ(report.at("profiles"), json::object());
  ASSERT_EQ(report.at("diagnostics").size(), 1U);
  EXPECT_EQ(report.at("diagnostics")[0].at("rule"), "I01");
  EXPECT_EQ(report.at("diagnostics")[0].at("family"), "input");
}

TEST(CheckJson, NamesTheEntryThatBreaksTheRule) {
  const json task = report_of("[1, 0, -1]").at("diagnostics").at(0).at("witness").at("tasks").at(0);
  EXPECT_EQ(task, (json{{"rank", 0}, {"index", 1}, {"text", "0"}, {"action", nullptr}}));
}

// An edit says which bytes to replace by what.
TEST(CheckJson, AnEditCuresWhatItIsGivenFor) {
  std::string order = "[1, 2.0, -2, -1]";
  const json help = report_of(order).at("diagnostics").at(0).at("help");
  ASSERT_FALSE(help.at("edits").empty()) << help;
  const json edit = help.at("edits").at(0);
  order.replace(edit.at("span").at("offset").get<std::size_t>(),
                edit.at("span").at("length").get<std::size_t>(),
                edit.at("replacement").get<std::string>());
  EXPECT_EQ(check_order(order).exit_code, 0) << order;
}

// An unreadable file is reported to the program that asked for JSON, too.
TEST(CheckJson, IsGivenOrTheReasonStandsOnStandardError) {
  const Outcome outcome = run_capo({"check", "no/such/file", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.empty(), outcome.err.empty());
  if (!outcome.out.empty()) {
    EXPECT_EQ(json::parse(outcome.out).at("verdict"), "no-verdict");
  }
}

// --- SARIF --------------------------------------------------------------------------------------

TEST(CheckSarif, HoldsTheResultsAndTheirRules) {
  const json log = json::parse(check_order("[1, nan, 0]", {"--format", "sarif"}).out);
  EXPECT_EQ(log.at("version"), "2.1.0");
  const json run = log.at("runs").at(0);
  EXPECT_EQ(run.at("tool").at("driver").at("name"), "capo");
  std::vector<std::string> results;
  for (const json& result : run.at("results")) results.push_back(result.at("ruleId"));
  EXPECT_EQ(results, (std::vector<std::string>{"S01", "S04"}));
  std::vector<std::string> rules;
  for (const json& rule : run.at("tool").at("driver").at("rules")) rules.push_back(rule.at("id"));
  EXPECT_EQ(rules, results);
  const json region = run.at("results")[0].at("locations")[0].at("physicalLocation").at("region");
  EXPECT_EQ(region, (json{{"startLine", 1}, {"startColumn", 5}, {"endLine", 1}, {"endColumn", 8}}));
  EXPECT_EQ(run.at("invocations")[0].at("executionSuccessful"), true);
}

TEST(CheckSarif, ACircleOfWaitsIsACodeFlow) {
  const auto result = json::parse(
      run_capo({"check", "--order", "2 1 -2 -1", "--topology", "chain", "--format", "sarif"})
          .out)["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "D03");
  const auto& steps = result["codeFlows"][0]["threadFlows"][0]["locations"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["location"]["physicalLocation"]["region"]["startColumn"], 1);
  EXPECT_EQ(steps[1]["location"]["physicalLocation"]["region"]["startColumn"], 3);
  EXPECT_FALSE(
      json::parse(check_order("[1, -1, -1]", {"--format", "sarif"}).out)["runs"][0]["results"][0]
          .contains("codeFlows"));
}

TEST(CheckSarif, ARefusedInputIsNoSuccess) {
  const json run = json::parse(check_order("[1, -1", {"--format", "sarif"}).out).at("runs").at(0);
  EXPECT_EQ(run.at("invocations")[0].at("executionSuccessful"), false);
  EXPECT_EQ(run.at("results").at(0).at("ruleId"), "I01");
}

TEST(CheckSarif, AnAcceptedOrderHasNoResults) {
  const json run = json::parse(check_order("[1, -1]", {"--format", "sarif"}).out).at("runs").at(0);
  EXPECT_EQ(run.at("results"), json::array());
}

// The file says that it counts UTF-16 code units, and é is one.
TEST(CheckSarif, CountsColumnsAsItSays) {
  const json run =
      json::parse(check_order("[1, -1 (é) x]", {"--format", "sarif"}).out).at("runs").at(0);
  ASSERT_EQ(run.at("columnKind"), "utf16CodeUnits");
  const json region = run.at("results")[0].at("locations")[0].at("physicalLocation").at("region");
  EXPECT_EQ(region.at("startColumn"), 12);
  EXPECT_EQ(region.at("endColumn"), 13);
}

TEST(CheckSarif, AFilesNameIsAUri) {
  const Outcome outcome = run_capo({"check", "malformed-lf.te", "--format", "sarif"},
                                   {.directory = CAPO_SOURCE_DIR "/tests/corpus/input/line-ends"});
  const json location = json::parse(outcome.out).at("runs")[0].at("results")[0].at("locations")[0];
  EXPECT_EQ(location.at("physicalLocation").at("artifactLocation").at("uri"), "malformed-lf.te");
}

}  // namespace
}  // namespace capo
