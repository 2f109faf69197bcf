// `capo check --batch`: one result a line, in the order of the lines; a malformed line is a result
// of its own; what is the user's own goes through byte for byte.

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
using testing_support::Outcome;
using testing_support::run_capo;

Outcome batch(const std::string& lines, std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments{"check", "--batch", "-"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return run_capo(arguments, {.input = lines});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<json> results_of(const Outcome& outcome) {
  std::vector<json> results;
  for (const std::string& line : lines_of(outcome.out)) results.push_back(json::parse(line));
  return results;
}

std::vector<std::string> verdicts_of(const Outcome& outcome) {
  std::vector<std::string> verdicts;
  for (const json& result : results_of(outcome)) verdicts.push_back(result.at("verdict"));
  return verdicts;
}

using Verdicts = std::vector<std::string>;

TEST(Batch, AnyNumberOfThreadsWritesTheSameBytes) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) {
    lines += i % 7 == 0   ? "{\"order\":[1,-1,-1]}\n"
             : i % 5 == 0 ? "{\"order\":[2,1,-1,-2]}\n"
             : i % 3 == 0 ? "{\"csv\":[\"0F0,0B0\",\"1F0,1B0\"]}\n"
                          : "{\"order\":[1,2,-2,-1]}\n";
  }
  const Outcome one = batch(lines, {"--profile", "sound,te"});
  EXPECT_EQ(lines_of(one.out).size(), 3000U);
  for (const char* threads : {"1", "2", "8"}) {
    const Outcome several = batch(lines, {"--profile", "sound,te", "--threads", threads});
    EXPECT_EQ(several.exit_code, one.exit_code);
    EXPECT_TRUE(several.out == one.out) << threads << " threads";
  }
}

TEST(Batch, TheEnvironmentIsThatOfEveryLine) {
  const std::string lines = "{\"order\":[1,2,-2,-1]}\n{\"order\":[2,1,-1,-2]}\n";
  EXPECT_EQ(verdicts_of(batch(lines)), (Verdicts{"accepted", "accepted"}));
  EXPECT_EQ(verdicts_of(batch(lines, {"--topology", "chain"})), (Verdicts{"accepted", "rejected"}));
}

TEST(Batch, ALineThatTheTopologyDoesNotFitHasNoVerdict) {
  const std::string line =
      "{\"ranks\":[{\"order\":[\"F1.0\",\"B1.0\"]}],\"placement\":\"chain\"}\n"
      "{\"csv\":[\"0F0,3F0,3B0,0B0\",\"1F0,2F0,2B0,1B0\"]}\n";
  EXPECT_EQ(verdicts_of(batch(line, {"--topology", "v"})), (Verdicts{"accepted", "accepted"}));
  EXPECT_EQ(verdicts_of(batch(line, {"--topology", "loop"})), (Verdicts{"accepted", "no-verdict"}));
}

// A line's slip is looked for behind the verdict, so its place is not compared where there is one.
TEST(Batch, VerdictsAloneAreThoseOfTheReports) {
  const std::string lines =
      "{\"order\":[1,-1]}\n"
      "{\"order\":[1,-1,-1,1]}\n"
      "{\"order\":[2,1,-1,-2],\"num_layers_per_chunk\":[1,1],\"plan\":\"te\"}\n"
      "{\"order\":[1,1,-1,-1,-1.5,-1.5],\"num_layers_per_chunk\":[1],\"plan\":\"te\"}\n"
      "{\"csv\":[\"0F0,0B0\",\"1B0,1F0\"]}\n"
      "{\"ranks\":[{\"order\":[\"F1.0\",\"B1.0\"]},{\"order\":[\"B1.0\",\"F1.0\"]}],"
      "\"placement\":\"chain\"}\n";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--topology", "chain"}, {"--plan", "te"}}) {
    std::vector<std::string> alone = flags;
    alone.emplace_back("--verdicts");
    const Outcome whole = batch(lines, flags);
    const Outcome brief = batch(lines, alone);
    EXPECT_EQ(brief.exit_code, whole.exit_code);
    EXPECT_EQ(verdicts_of(brief), verdicts_of(whole));
    const std::vector<json> reports = results_of(whole);
    const std::vector<json> results = results_of(brief);
    ASSERT_EQ(results.size(), 6U);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].at("verdict") != "rejected") {
        EXPECT_FALSE(results[i].contains("rule"));
        continue;
      }
      EXPECT_EQ(results[i].at("rule"), reports[i].at("diagnostics").at(0).at("rule")) << results[i];
    }
  }
}

TEST(Batch, AVerdictAloneNamesItsRuleAndPlaceAndWhatTheLineKeeps) {
  const Outcome outcome =
      batch("{\"order\":[1,-1,-1,1],\"note\":\"mine\"}\n{\"order\":[1,-1,\n", {"--verdicts"});
  EXPECT_EQ(outcome.exit_code, 3);
  const auto lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            "{\"schema\":1,\"verdict\":\"rejected\",\"rule\":\"S23\",\"rank\":0,\"index\":2,"
            "\"input\":{\"note\":\"mine\"}}");
  EXPECT_EQ(json::parse(lines[1]).at("verdict"), "no-verdict");
  EXPECT_FALSE(json::parse(lines[1]).at("diagnostics").empty()) << "its words say what to mend";
}

TEST(Batch, VerdictsAloneNeedABatchAndNoProfile) {
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", "--verdicts"}).exit_code, 2);
  EXPECT_EQ(batch("{\"order\":[1,-1]}\n", {"--verdicts", "--profile", "te"}).exit_code, 2);
  EXPECT_EQ(batch("{\"order\":[1,-1,-1]}\n", {"--verdicts", "--fail-on", "rejected"}).exit_code, 1);
}

TEST(Batch, ResultsComeInTheOrderOfTheLines) {
  std::string lines;
  for (int i = 1; i <= 300; ++i) {
    lines += "{\"order\":[1";
    for (int k = 1; k < i; ++k) lines += ",1";
    lines += i % 3 == 0 ? "]" : ",-1]";
    lines += ",\"id\":" + std::to_string(i) + "}\n";
  }
  const std::vector<json> results = results_of(batch(lines));
  ASSERT_EQ(results.size(), 300U);
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].at("input").at("id"), i + 1);
}

TEST(Batch, EveryFormMayStandInALine) {
  const Outcome outcome = batch(R"({"order":[1,-1]}
{"csv":["0F0,0B0","1F0,1B0"]}
{"ranks":[{"order":["F1","B1"]}]}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "accepted", "accepted"}));
}

TEST(Batch, ARejectedLineIsAVerdict) {
  const Outcome outcome = batch("{\"order\":[1,-1]}\n{\"order\":[1]}\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "rejected"}));
}

TEST(Batch, AMalformedLineIsAResultOfItsOwnAndStopsNothing) {
  const Outcome outcome =
      batch("{\"order\":[1,-1]}\n{\"order\":[1,\nnonsense\n{\"order\":[1,-1]}\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "no-verdict", "no-verdict", "accepted"}));
  const json result = results_of(outcome)[2];
  ASSERT_EQ(result.at("diagnostics").size(), 1U);
  EXPECT_EQ(result.at("diagnostics")[0].at("rule"), "I01");
  EXPECT_TRUE(result.at("environment").is_null());
}

TEST(Batch, APlaceNamesTheFilesLine) {
  const json result = results_of(batch("{\"order\":[1,-1]}\n{\"order\":[1,nonsense]}\n"))[1];
  const json span = result.at("diagnostics")[0].at("spans")[0];
  EXPECT_EQ(span.at("source"), "<stdin>:2");
  EXPECT_EQ(span.at("line"), 1);
}

TEST(Batch, OverALimitIsExitCodeFour) {
  EXPECT_EQ(batch("{\"order\":[1,-1]}\n", {"--max-entries", "1"}).exit_code, 4);
  EXPECT_EQ(batch("nonsense\n{\"order\":[1,-1]}\n", {"--max-entries", "1"}).exit_code, 4);
}

TEST(Batch, TheLastLineNeedsNoLineEnd) {
  const Outcome outcome = batch("{\"order\":[1,-1]}\n{\"order\":[1,-1]}");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "accepted"}));
  EXPECT_TRUE(outcome.out.ends_with("}\n"));
}

TEST(Batch, LinesMayEndWithCrlf) {
  const std::string lf =
      "{\"order\":[1,-1],\"note\":\"a\"}\n{\"order\":[1]}\n{\"order\":[\n{\"order\":[1,-1]}";
  std::string crlf;
  for (const char c : lf) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Outcome outcome = batch(crlf);
  EXPECT_EQ(outcome.out, batch(lf).out);
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "rejected", "no-verdict", "accepted"}));
}

TEST(Batch, AnEmptyLineIsAResultOfItsOwn) {
  const Outcome outcome = batch("{\"order\":[1,-1]}\n\n{\"order\":[1,-1]}\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"accepted", "no-verdict", "accepted"}));
}

TEST(Batch, BlankLinesAtTheEndAreNone) {
  const std::string line = "{\"order\":[1,-1]}\n";
  for (const std::string end : {"\n", "  \n", "\r\n", "\n\n\t\n", " "}) {
    const Outcome outcome = batch(line + line + end);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, batch(line + line).out);
  }
  EXPECT_EQ(batch("\n \n").out, "");
}

TEST(Batch, FailsOnRejectedLinesIfItIsToldSo) {
  const std::string good = "{\"order\":[1,-1]}\n";
  const std::string bad = "{\"order\":[1]}\n";
  EXPECT_EQ(batch(good + bad, {"--fail-on", "rejected"}).exit_code, 1);
  EXPECT_EQ(batch(good + bad, {"--fail-on", "no-verdict"}).exit_code, 0);
  EXPECT_EQ(batch(good, {"--fail-on", "rejected"}).exit_code, 0);
  EXPECT_EQ(batch(bad + "nonsense\n", {"--fail-on", "rejected"}).exit_code, 3);
  EXPECT_EQ(batch(good + bad, {"--fail-on", "rejected"}).out, batch(good + bad).out);
}

TEST(Batch, ALineWithoutAVerdictOfAPlanIsExitCodeFour) {
  EXPECT_EQ(batch("{\"order\":[1,-1]}\n", {"--plan", "te", "--max-buffers", "1"}).exit_code, 4);
}

TEST(Batch, MayBeWrittenToAFile) {
  const testing_support::ScratchFolder folder;
  const std::string lines = "{\"order\":[1,-1]}\n{\"order\":[1]}\n";
  const Outcome outcome = batch(lines, {"-o", folder.path() / "out.jsonl"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(folder.read("out.jsonl"), batch(lines).out);
}

TEST(Batch, AnEmptyFileHasNoResults) {
  const Outcome outcome = batch("");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

// --- what is the user's own ---------------------------------------------------------------------

// The bytes between `"input":` and the result's last brace.
std::string input_of(const std::string& line) {
  const std::size_t at = line.find(",\"input\":");
  return at == std::string::npos ? "" : line.substr(at + 9, line.size() - at - 10);
}

TEST(Batch, OtherKeysGoThroughByteForByte) {
  const std::vector<std::string> members{
      R"("id":7)",
      R"("n":1.1000)",
      R"("n":123456789012345678901234567890.123456789012345678901234567890)",
      R"("n":1E+02)",
      R"("n":-0)",
      R"("s":"a\u00e9\/\n")",
      R"("s":"é順")",
      R"("deep":{"a":[1, 2 ,{"b" : null}]})",
      R"("":"empty")",
      R"("a":1,"b":true,"c":[])",
      R"("input":{"order":5})",
      R"("verdict":"mine")",
  };
  for (const std::string& member : members) {
    SCOPED_TRACE(member);
    const Outcome outcome = batch("{\"order\":[1,-1]," + member + "}\n");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
    ASSERT_EQ(lines_of(outcome.out).size(), 1U);
    EXPECT_EQ(input_of(lines_of(outcome.out)[0]), "{" + member + "}");
    EXPECT_EQ(results_of(outcome)[0].at("verdict"), "accepted");
  }
}

// JSON sets no bound to a number; a double's is no concern of the user's own keys.
TEST(Batch, ANumberBeyondADoubleHasNoVerdictAndStopsNothing) {
  const Outcome outcome = batch("{\"order\":[1,-1],\"n\":1e400}\n{\"order\":[1,-1]}\n");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_EQ(results_of(outcome).at(0).at("verdict"), "no-verdict");
  EXPECT_EQ(results_of(outcome).at(1).at("verdict"), "accepted");
}

TEST(Batch, WithoutOtherKeysThereIsNoInput) {
  EXPECT_FALSE(
      results_of(batch("{\"order\":[1,-1],\"num_layers_per_chunk\":[1]}\n"))[0].contains("input"));
}

TEST(Batch, OtherKeysStayWithALineThatIsNoSchedule) {
  const Outcome outcome = batch("{\"order\":\"x\",\"id\":7}\n{\"id\":8}\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(results_of(outcome).at(0).at("input").at("id"), 7);
  EXPECT_EQ(results_of(outcome).at(1).at("input").at("id"), 8);
}

// A key of another form is none of this one's: it is used, handed through or refused, but not
// dropped.
TEST(Batch, AKeyOfAnotherFormIsNotDropped) {
  for (const std::string member : {R"("stages":7)", R"("layers":[2])", R"("stage_to_rank":[5])",
                                   R"("format":"comms")", R"("placement":"loop")"}) {
    SCOPED_TRACE(member);
    const json result = results_of(batch("{\"order\":[1,-1]," + member + "}\n")).at(0);
    EXPECT_TRUE(result.at("verdict") == "no-verdict" || result.contains("input")) << result;
  }
}

// --- with other options -------------------------------------------------------------------------

TEST(Batch, ProfilesAreAskedForEachLine) {
  const std::vector<json> results =
      results_of(batch("{\"order\":[1,-1]}\n{\"order\":[-1,1]}\n", {"--profile", "te,mcore"}));
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].at("profiles").at("te").at("accepts"), true);
  EXPECT_EQ(results[1].at("profiles").at("te").at("accepts"), false);
  EXPECT_EQ(results[1].at("profiles").at("mcore").at("accepts"), false);
}

TEST(Batch, DeclarationsHoldForLinesThatMakeNone) {
  const Outcome outcome =
      batch("{\"order\":[1,-1]}\n{\"order\":[1,-1],\"microbatches\":1}\n", {"--microbatches", "2"});
  EXPECT_EQ(verdicts_of(outcome), (Verdicts{"rejected", "accepted"}));
}

TEST(Batch, FindingsAreLimitedPerLine) {
  const std::vector<json> results = results_of(batch(
      "{\"order\":[\"NaN\",\"NaN\"]}\n{\"order\":[\"NaN\",\"NaN\"]}\n", {"--max-findings", "1"}));
  for (const json& result : results) EXPECT_EQ(result.at("findings").at("not_shown"), 1);
}

TEST(Batch, SaysTheSameAsACheckOfTheLine) {
  for (const std::string line :
       {R"({"order":[1,1,2,-2,-1]})", R"({"csv":["0F0,0B0x"]})", R"({"order":[)"}) {
    SCOPED_TRACE(line);
    const json alone =
        json::parse(run_capo({"check", "--order", line, "--form", "json", "--format", "json"}).out);
    const json in_batch = results_of(batch(line + "\n")).at(0);
    for (const char* key : {"verdict", "environment", "findings", "skipped"}) {
      EXPECT_EQ(in_batch.at(key), alone.at(key)) << key;
    }
    ASSERT_EQ(in_batch.at("diagnostics").size(), alone.at("diagnostics").size());
    for (std::size_t i = 0; i < alone.at("diagnostics").size(); ++i) {
      EXPECT_EQ(in_batch.at("diagnostics")[i].at("message"),
                alone.at("diagnostics")[i].at("message"));
    }
  }
}

TEST(Batch, ExcludesOtherInput) {
  EXPECT_EQ(run_capo({"check", "--batch", "-", "--order", "[1]"}).exit_code, 2);
  EXPECT_EQ(run_capo({"check", "plan.order", "--batch", "-"}).exit_code, 2);
}

// A batch's results are lines of JSON; what asks for something else would be ignored in silence.
TEST(Batch, AnotherFormatIsAUsageError) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--format", "sarif"}, {"--format", "text"}, {"--form", "te"}}) {
    SCOPED_TRACE(flags[0] + " " + flags[1]);
    EXPECT_EQ(batch("{\"order\":[1,-1]}\n", flags).exit_code, 2);
  }
}

TEST(Batch, ManyLinesAreWrittenWhole) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "{\"order\":[1,-1]}\n";
  const Outcome outcome = batch(lines);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(lines_of(outcome.out).size(), 20'000U);
  EXPECT_TRUE(json::accept(lines_of(outcome.out).back()));
}

}  // namespace
}  // namespace capo
