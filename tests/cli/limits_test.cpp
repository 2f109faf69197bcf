// Both sides of every limit: exactly at it there is a verdict, one beyond there is none and the
// exit code is 4; of findings the report shows fewer, and verdict and count stay right.

#include "cli/options/memory_limit.h"
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
using testing_support::ScratchFolder;

struct Text {
  std::string form;
  std::string text;
};

std::vector<Text> one_of_each_form() {
  return {{"te", "[1, -1]"},
          {"order", "capo 1\nrank 0: F1 B1\n"},
          {"csv", "0F0,0B0\n"},
          {"json", "{\"order\":[1,-1]}"}};
}

Outcome check(const Text& input, const std::string& flag, std::size_t limit,
              std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"check",    "-",  "--form",
                                     input.form, flag, std::to_string(limit)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_capo(arguments, {.input = input.text});
}

void expect_verdict(const Outcome& outcome) {
  EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 1)
      << outcome.exit_code << outcome.out << outcome.err;
}

// One report, which names the flag that raises the limit.
void expect_over_limit(const Outcome& outcome, const std::string& flag) {
  EXPECT_EQ(outcome.exit_code, 4) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.empty(), outcome.err.empty());
  EXPECT_NE((outcome.out + outcome.err).find("raise the limit with " + flag), std::string::npos)
      << outcome.out << outcome.err;
}

// `input` needs exactly `needs` of what `flag` limits.
void expect_both_sides(const Text& input, const std::string& flag, std::size_t needs) {
  SCOPED_TRACE(input.form + " " + flag + " " + std::to_string(needs) + ": " + input.text);
  expect_verdict(check(input, flag, needs));
  const Outcome beyond = check(input, flag, needs - 1);
  expect_over_limit(beyond, flag);
  if (!beyond.out.empty()) {
    EXPECT_TRUE(beyond.out.starts_with("error[I02]: ")) << beyond.out;
    EXPECT_TRUE(beyond.out.ends_with("no verdict\n")) << beyond.out;
  }
}

// Where the input says too much: "2:9".
void expect_place(const Text& input, const std::string& flag, std::size_t limit,
                  const std::string& place) {
  SCOPED_TRACE(input.form + " " + flag + ": " + input.text);
  const Outcome outcome = check(input, flag, limit);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.out.find("--> <stdin>:" + place + "\n"), std::string::npos) << outcome.out;
}

// --- memory -------------------------------------------------------------------------------------

// A static input and a grad input of 2^52 bytes each, of eight microbatches and of nine.
TEST(Addresses, BoundTheMemoryOfARank) {
  const ScratchFolder folder;
  const std::string model = folder.write("a.model", R"({"schema": 1, "layers": ["m"], "modules": {
      "m": {"kind": "linear", "dtype": "bf16",
            "bytes": {"input": 4503599627370496, "output": 0, "activations": 0, "operands": 0}}}})");
  const auto check_of = [&](const std::string& order) {
    return run_capo({"check", "--order", order, "--plan", "safe", "--model", model});
  };
  expect_verdict(check_of("[1,1,1,1,1,1,1,1,-1,-1,-1,-1,-1,-1,-1,-1]"));
  const Outcome beyond = check_of("[1,1,1,1,1,1,1,1,1,-1,-1,-1,-1,-1,-1,-1,-1,-1]");
  EXPECT_EQ(beyond.exit_code, 4);
  EXPECT_TRUE(
      beyond.out.starts_with("error[I02]: the buffers and weights of rank 0 take more than 64 PiB"))
      << beyond.out;
}

// --- bytes --------------------------------------------------------------------------------------

TEST(MaxBytes, HoldsForEveryForm) {
  for (const Text& input : one_of_each_form())
    expect_both_sides(input, "--max-bytes", input.text.size());
}

TEST(MaxBytes, HoldsForAnOrderOnTheCommandLine) {
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", "--max-bytes", "7"}).exit_code, 0);
  const Outcome beyond = run_capo({"check", "--order", "[1, -1]", "--max-bytes", "6"});
  expect_over_limit(beyond, "--max-bytes");
  EXPECT_TRUE(beyond.out.starts_with("error[I02]: ")) << beyond.out;
}

TEST(MaxBytes, HoldsForAFile) {
  const std::string file =
      CAPO_SOURCE_DIR "/tests/corpus/input/line-ends/accepted-no-last-line-end-lf.te";
  EXPECT_EQ(run_capo({"check", file, "--max-bytes", "7"}).exit_code, 0);
  expect_over_limit(run_capo({"check", file, "--max-bytes", "6"}), "--max-bytes");
}

TEST(MaxBytes, HoldsForAWholeBatch) {
  const std::string lines = "{\"order\":[1,-1]}\n{\"order\":[1,-1]}\n";
  EXPECT_EQ(run_capo({"check", "--batch", "-", "--max-bytes", "34"}, {.input = lines}).exit_code,
            0);
  expect_over_limit(run_capo({"check", "--batch", "-", "--max-bytes", "33"}, {.input = lines}),
                    "--max-bytes");
}

TEST(MaxBytes, HoldsForConvert) {
  EXPECT_EQ(run_capo({"convert", "--order", "[1, -1]", "--to", "te", "--max-bytes", "7"}).exit_code,
            0);
  expect_over_limit(run_capo({"convert", "--order", "[1, -1]", "--to", "te", "--max-bytes", "6"}),
                    "--max-bytes");
}

// --- entries ------------------------------------------------------------------------------------

TEST(MaxEntries, HoldsForEveryForm) {
  const std::vector<Text> inputs{
      {"te", "[1, 1, -1, -1]"},
      {"te", "1 1 -1 -1"},
      {"order", "capo 1\nrank 0: F1 F1 B1 B1\n"},
      {"order", "capo 1\nrank 0: F1 B1\nrank 1: F1 B1\n"},
      {"order", "capo 1\nrank 0: F1 . . B1\n"},
      {"order", "capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1\n"},
      {"order", "capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n"},
      {"csv", "0F0,0F1,0B0,0B1\n"},
      {"csv", "0F0,0B0\n1F0,1B0\n"},
      {"csv", "0F0,,,0B0\n"},
      {"csv", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"},
      {"json", "{\"order\":[1,1,-1,-1]}"},
      {"json", "{\"csv\":[\"0F0,0B0\",\"1F0,1B0\"]}"},
      {"json", "{\"csv\":[\"0F0,(0F1;0B0)OVERLAP_F_B,0B1\"]}"},
      {"json", "{\"ranks\":[{\"order\":[\"F1\",\"F1\",\"B1\",\"B1\"]}]}"},
      {"json", "{\"ranks\":[{\"order\":[\"F1\",\"B1\"]},{\"order\":[\"F1\",\"B1\"]}]}"},
      {"json", "{\"ranks\":[{\"order\":[\"F1.0\",[\"F1.1\",\"B1.0\"],\"B1.1\"]}]}"},
  };
  for (const Text& input : inputs) expect_both_sides(input, "--max-entries", 4);
}

TEST(MaxEntries, TheReportPointsAtTheFirstEntryBeyond) {
  expect_place({"te", "[1, 1,\n -1, -1]"}, "--max-entries", 2, "2:2");
  expect_place({"order", "capo 1\nrank 0: F1 F1\n  B1 B1\n"}, "--max-entries", 3, "3:6");
  expect_place({"csv", "0F0,0B0\n1F0,1B0\n"}, "--max-entries", 3, "2:5");
  expect_place({"json", "{\"order\":[1,1,\n-1,-1]}"}, "--max-entries", 3, "2:4");
  expect_place({"json", "{\"ranks\":[{\"order\":[\"F1\",\"B1\"]}]}"}, "--max-entries", 1, "1:26");
}

TEST(MaxEntries, HoldsForEachLineOfABatch) {
  const Outcome outcome =
      run_capo({"check", "--batch", "-", "--max-entries", "2"},
               {.input = "{\"order\":[1,-1]}\n{\"order\":[1,1,-1,-1]}\n{\"order\":[1,-1]}\n"});
  EXPECT_EQ(outcome.exit_code, 4);
  std::istringstream lines(outcome.out);
  std::vector<std::string> verdicts;
  for (std::string line; std::getline(lines, line);)
    verdicts.push_back(json::parse(line).at("verdict"));
  EXPECT_EQ(verdicts, (std::vector<std::string>{"accepted", "no-verdict", "accepted"}));
}

// --- ranks --------------------------------------------------------------------------------------

TEST(MaxRanks, HoldsForEveryFormWithRanks) {
  const std::vector<Text> inputs{
      {"order", "capo 1\nrank 0: F1 B1\nrank 1: F1 B1\nrank 2: F1 B1\n"},
      {"order", "capo 1\nranks 3\nrank 2: F1 B1\nrank 0: F1 B1\nrank 1: F1 B1\n"},
      {"csv", "0F0,0B0\n1F0,1B0\n2F0,2B0\n"},
      {"csv", "0F0,0B0\n1F0,1B0\n2F0,2B0"},
      {"json", "{\"csv\":[\"0F0,0B0\",\"1F0,1B0\",\"2F0,2B0\"]}"},
      {"json",
       "{\"ranks\":[{\"order\":[\"F1\",\"B1\"]},{\"order\":[\"F1\",\"B1\"]},{\"order\":[\"F1\","
       "\"B1\"]}]}"},
  };
  for (const Text& input : inputs) expect_both_sides(input, "--max-ranks", 3);
}

TEST(MaxRanks, ARankNumberAloneIsEnough) {
  EXPECT_EQ(check({"order", "capo 1\nrank 3: F1 B1\n"}, "--max-ranks", 4).exit_code, 3);
  expect_over_limit(check({"order", "capo 1\nrank 3: F1 B1\n"}, "--max-ranks", 3), "--max-ranks");
}

TEST(MaxRanks, TheReportPointsAtTheFirstRankBeyond) {
  expect_place({"order", "capo 1\nrank 0: F1 B1\nrank 1: F1 B1\n"}, "--max-ranks", 1, "3:6");
  expect_place({"csv", "0F0,0B0\n1F0,1B0\n"}, "--max-ranks", 1, "2:1");
  expect_place({"csv", "0F0,0B0\n1F0,1B0\n2F0,2B0\n"}, "--max-ranks", 1, "2:1");
  expect_place({"json", "{\"csv\":[\"0F0,0B0\",\n\"1F0,1B0\"]}"}, "--max-ranks", 1, "2:2");
  expect_place({"json", "{\"ranks\":[{\"order\":[\"F1\",\"B1\"]},\n{\"order\":[\"F1\",\"B1\"]}]}"},
               "--max-ranks", 1, "2:1");
}

// --- counts -------------------------------------------------------------------------------------

TEST(MaxCount, HoldsForEveryNumberOfAnOrderFile) {
  const std::vector<std::string> statements{
      "chunks 5\nrank 0: F1 B1\n",
      "stages 5\nrank 0: F1 B1\n",
      "microbatches 5\nrank 0: F1 B1\n",
      "layers 5\nrank 0: F1 B1\n",
      "layers 1,5\nrank 0: F1 B1\n",
      "rank 0 layers 5\nrank 0: F1 B1\n",
      "chunks 5\ndelayed 5\nrank 0: F1 B1\n",
      "chunks 5\nmixed 5\nrank 0: F1.0 B1.0\n",
      "rank 0: F5 B5\n",
      "rank 0: F1.5 B1.5\n",
      "placement custom\nrank 0 stages 5\nrank 0: F1.0 B1.0\n",
      "rank 0: F1 F2 F3 F4 F5 B5 B4 B3 B2 B1\n",
      "rank 0 chunks 2\nrank 0: F1 B1\nrank 1 chunks 3\nrank 1: F1 B1\n",
  };
  for (const std::string& text : statements)
    expect_both_sides({"order", "capo 1\n" + text}, "--max-count", 5);
}

TEST(MaxCount, HoldsForEveryNumberOfATable) {
  for (const char* text :
       {"0F5,0B5\n", "5F0,5B0\n", "0F0,5UNSHARD,0B0\n", "(0F5;0B5)OVERLAP_F_B\n"}) {
    expect_both_sides({"csv", text}, "--max-count", 5);
  }
}

TEST(MaxCount, HoldsForEveryNumberOfJson) {
  const std::vector<std::string> texts{
      R"({"order":[1,-1],"num_layers_per_chunk":5})",
      R"({"order":[1,-1],"num_layers_per_chunk":[5]})",
      R"({"order":[1,-1],"microbatches":5})",
      R"({"csv":["0F5,0B5"]})",
      R"({"csv":["5F0,5B0"]})",
      R"({"csv":["0F0,0B0"],"microbatches":5})",
      R"({"csv":["0F0,0B0"],"stages":5})",
      R"({"ranks":[{"order":["F1","B1"]}],"microbatches":5})",
      R"({"ranks":[{"order":["F1","B1"]}],"stages":5})",
      R"({"ranks":[{"order":["F1","B1"]}],"layers":5})",
      R"({"ranks":[{"order":["F1","B1"],"chunks":5}]})",
      R"({"ranks":[{"order":["F1","B1"],"layers":[5]}]})",
      R"({"ranks":[{"order":["F1","B1"],"chunks":5,"delayed":[5]}]})",
      R"({"ranks":[{"order":["F1.0","B1.0"],"chunks":5,"mixed":[5]}]})",
      R"({"ranks":[{"order":["F5","B5"]}]})",
      R"({"ranks":[{"order":["F1.5","B1.5"]}]})",
      R"({"placement":"custom","ranks":[{"order":["F1.0","B1.0"],"stages":[5]}]})",
      R"({"ranks":[{"order":["F1","B1"],"chunks":2},{"order":["F1","B1"],"chunks":3}]})",
  };
  for (const std::string& text : texts) expect_both_sides({"json", text}, "--max-count", 5);
}

// Every number beyond the limit is one, however many digits it has.
TEST(MaxCount, ALongerNumberIsNoOtherMistake) {
  for (const char* number :
       {"4194305", "9223372036854775808", "99999999999999999999", "9999999999999999999999999999"}) {
    const std::string n = number;
    for (const Text& input :
         std::vector<Text>{{"order", "capo 1\nchunks " + n + "\nrank 0: F1 B1\n"},
                           {"order", "capo 1\nrank 0: F" + n + " B1\n"},
                           {"order", "capo 1\nrank 0: F1." + n + " B1.0\n"},
                           {"csv", n + "F0,0B0\n"},
                           {"json", "{\"ranks\":[{\"order\":[\"F" + n + "\"]}]}"},
                           {"json", "{\"order\":[1,-1],\"microbatches\":" + n + "}"}}) {
      SCOPED_TRACE(input.text);
      expect_over_limit(check(input, "--max-bytes", 1000), "--max-count");
    }
  }
}

// A number on the command line is no better than one in the input: nothing is allocated for it
// alone.
TEST(MaxCount, HoldsForTheDeclarationsOnTheCommandLine) {
  const std::vector<std::pair<Text, std::vector<std::string>>> inputs{
      {{"te", "[1, -1]"}, {"--microbatches", "6"}},
      {{"te", "[1, -1]"}, {"--layers-per-chunk", "6"}},
      {{"te", "[1, -1]"}, {"--layers-per-chunk", "[6]"}},
      {{"te", "[1, -1]"}, {"--delayed", "6"}},
      {{"csv", "0F0,0B0\n"}, {"--microbatches", "6"}},
      {{"csv", "0F0,0B0\n"}, {"--stages", "6"}},
      {{"csv", "0F0,0B0\n"}, {"--stages", "2147483647", "--profile", "torch"}},
  };
  for (const auto& [input, flags] : inputs) {
    SCOPED_TRACE(input.text + " " + flags[0] + " " + flags[1]);
    const Outcome outcome = check(input, "--max-count", 5, flags);
    EXPECT_TRUE(outcome.exit_code == 2 || outcome.exit_code == 4)
        << outcome.exit_code << "\n"
        << outcome.out.substr(0, 500) << outcome.err;
  }
}

// What an input may declare within the limits ends in a verdict, not in exhausted memory.
TEST(MaxCount, TheLargestDeclarationsEndInAVerdict) {
  const std::vector<Text> inputs{
      {"json", R"({"csv":["0F0,0B0"],"microbatches":4194304,"stages":4194304})"},
      {"order", "capo 1\nmicrobatches 4194304\nchunks 4194304\nrank 0: F1.0 B1.0\n"},
      {"order", "capo 1\nmicrobatches 4194304\nlayers 4194304\nrank 0: F1 B1\n"},
      {"csv", "4194304F4194304,4194304B4194304\n"},
  };
  for (const Text& input : inputs) {
    SCOPED_TRACE(input.text);
    expect_verdict(check(input, "--max-bytes", 1000));
  }
}

// --- depth --------------------------------------------------------------------------------------

TEST(MaxDepth, HoldsForJson) {
  expect_both_sides({"json", R"({"order":[1,-1]})"}, "--max-depth", 2);
  expect_both_sides({"json", R"({"ranks":[{"order":["F1","B1"]}]})"}, "--max-depth", 4);
  expect_both_sides({"json", R"({"ranks":[{"order":[["F1.0","B1.0"]]}]})"}, "--max-depth", 5);
}

TEST(MaxDepth, TheReportPointsAtTheBracketBeyond) {
  expect_place({"json", R"({"order":[1,-1]})"}, "--max-depth", 1, "1:10");
  expect_place({"json", "{\"ranks\":[\n{\"order\":[]}]}"}, "--max-depth", 2, "2:1");
}

TEST(MaxDepth, HoldsForKeysThatAreHandedThrough) {
  const auto run = [](const char* limit) {
    return run_capo({"check", "--batch", "-", "--max-depth", limit},
                    {.input = R"({"order":[1,-1],"note":[[[]]]})"});
  };
  EXPECT_EQ(run("4").exit_code, 0);
  EXPECT_EQ(run("3").exit_code, 4);
}

TEST(MaxDepth, TheDefaultIsSixtyFour) {
  const auto nested = [](std::size_t depth) {
    return "{\"order\":[1,-1],\"note\":" + std::string(depth - 1, '[') +
           std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(run_capo({"check", "--batch", "-"}, {.input = nested(64)}).exit_code, 0);
  EXPECT_EQ(run_capo({"check", "--batch", "-"}, {.input = nested(65)}).exit_code, 4);
}

// --- findings -----------------------------------------------------------------------------------

std::vector<Text> three_findings_of_one_rule() {
  return {{"te", "[nan, nan, nan]"},
          {"order", "capo 1\nrank 0: F1.0 F1.0 F1.0 F1.0 B1.0\n"},
          {"csv", "0F0x,0F1x,0B0x\n"},
          {"json", R"({"order":["NaN","NaN","NaN"]})"}};
}

TEST(MaxFindings, FewerAreShownAndVerdictAndCountStayRight) {
  for (const Text& input : three_findings_of_one_rule()) {
    SCOPED_TRACE(input.text);
    const Outcome all = check(input, "--max-findings", 3);
    EXPECT_EQ(all.exit_code, 1);
    EXPECT_EQ(all.out.find("not shown"), std::string::npos) << all.out;
    const Outcome fewer = check(input, "--max-findings", 2);
    EXPECT_EQ(fewer.exit_code, 1);
    EXPECT_NE(fewer.out.find(" not shown; --max-findings "), std::string::npos) << fewer.out;
    const auto verdict = [](const Outcome& outcome) {
      return outcome.out.substr(outcome.out.find("\nrejected: "));
    };
    EXPECT_EQ(verdict(fewer), verdict(all));

    const json all_json = json::parse(check(input, "--max-findings", 3, {"--format", "json"}).out);
    const json fewer_json =
        json::parse(check(input, "--max-findings", 2, {"--format", "json"}).out);
    EXPECT_EQ(all_json.at("findings").at("not_shown"), 0);
    EXPECT_EQ(fewer_json.at("findings").at("not_shown"), 1);
    EXPECT_EQ(fewer_json.at("findings").at("errors"), all_json.at("findings").at("errors"));
    EXPECT_EQ(fewer_json.at("diagnostics").size() + 1, all_json.at("diagnostics").size());
    EXPECT_EQ(fewer_json.at("verdict"), "rejected");
  }
}

TEST(MaxFindings, EachRuleHasItsOwn) {
  const Outcome outcome =
      check({"te", "[nan, nan, 0, 0]"}, "--max-findings", 1, {"--format", "json"});
  const json report = json::parse(outcome.out);
  ASSERT_EQ(report.at("diagnostics").size(), 2U);
  EXPECT_EQ(report.at("diagnostics")[0].at("rule"), "S01");
  EXPECT_EQ(report.at("diagnostics")[1].at("rule"), "S04");
  EXPECT_EQ(report.at("findings").at("not_shown"), 2);
}

TEST(MaxFindings, NoneShownIsStillRejected) {
  const Outcome outcome = check({"te", "[nan, nan]"}, "--max-findings", 0);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("rejected: 2 errors"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("`capo explain RULE`"), std::string::npos)
      << "there is no rule RULE:\n"
      << outcome.out;
}

TEST(MaxFindings, TheDefaultIsAHundred) {
  const auto nans = [](std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "nan" : ",nan";
    return text + "]";
  };
  const auto run = [](const std::string& order) {
    return json::parse(run_capo({"check", "--order", order, "--format", "json"}).out)
        .at("findings");
  };
  EXPECT_EQ(run(nans(100)).at("not_shown"), 0);
  EXPECT_EQ(run(nans(101)).at("not_shown"), 1);
  EXPECT_EQ(run(nans(101)).at("errors"), 101);
}

TEST(MaxFindings, SarifSaysHowManyAreLeftOut) {
  const Outcome outcome =
      check({"te", "[nan, nan, nan]"}, "--max-findings", 1, {"--format", "sarif"});
  const json run = json::parse(outcome.out).at("runs")[0];
  EXPECT_EQ(run.at("results").size(), 1U);
  const json& notifications = run.at("invocations")[0].at("toolExecutionNotifications");
  ASSERT_EQ(notifications.size(), 1U);
  EXPECT_NE(notifications[0].at("message").at("text").get<std::string>().find("2 more findings"),
            std::string::npos);
}

// --- graphs -------------------------------------------------------------------------------------

// The simulation of a profile is beside the verdict: beyond its limit the profile is not asked, and
// capo's own verdict and exit code are what they are.
TEST(MaxGraphs, BeyondItTheProfileSaysNothing) {
  const Text input{"te", "[1, 1, -1, -1]"};
  for (const std::string profile : {"te", "mcore"}) {
    SCOPED_TRACE(profile);
    const std::vector<std::string> flags{"--profile", profile, "--format", "json"};
    const Outcome at = check(input, "--max-graphs", 2, flags);
    EXPECT_EQ(at.exit_code, 0);
    EXPECT_EQ(json::parse(at.out).at("profiles").at(profile).at("accepts"), true);
    const Outcome beyond = check(input, "--max-graphs", 1, flags);
    EXPECT_EQ(beyond.exit_code, 0);
    const json opinion = json::parse(beyond.out).at("profiles").at(profile);
    EXPECT_TRUE(opinion.at("accepts").is_null()) << opinion;
    EXPECT_TRUE(opinion.at("error_kind").is_null()) << opinion;
    EXPECT_NE(opinion.at("reason").get<std::string>().find("--max-graphs"), std::string::npos)
        << opinion;
  }
}

// --- the flags themselves -----------------------------------------------------------------------

TEST(Limits, ALimitOutOfItsOwnRangeIsAUsageError) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad{
      {"--max-bytes", {"0", "-1", "4294967296", "x", "1e3", ""}},
      {"--max-entries", {"0", "-1", "2147483649", "x"}},
      {"--max-ranks", {"0", "-1", "16777217", "x"}},
      {"--max-count", {"0", "-1", "2147483648", "x"}},
      {"--max-depth", {"0", "-1", "10001", "x"}},
      {"--max-findings", {"-1", "18446744073709551616", "x"}},
      {"--max-graphs", {"-1", "18446744073709551616", "x"}},
  };
  for (const auto& [flag, values] : bad) {
    for (const std::string& value : values) {
      SCOPED_TRACE(flag + " " + value);
      const Outcome outcome = run_capo({"check", "--order", "[1, -1]", flag, value});
      EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
      EXPECT_EQ(outcome.out, "");
      EXPECT_NE(outcome.err.find(flag), std::string::npos) << outcome.err;
    }
  }
}

TEST(Limits, TheirOwnBoundsAreTaken) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--max-bytes", "4294967295"},
                                                        {"--max-entries", "2147483648"},
                                                        {"--max-ranks", "4194304"},
                                                        {"--max-count", "2147483647"},
                                                        {"--max-depth", "10000"},
                                                        {"--max-findings", "4294967295"}}) {
    SCOPED_TRACE(flag);
    EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", flag, value}).exit_code, 0);
  }
}

TEST(Limits, MemoryIsTheKernelsToKeep) {
  if (cli::kSanitized) GTEST_SKIP() << "a sanitizer reserves more memory than any limit allows";
  const ScratchFolder folder;
  const auto order = (folder.path() / "large.order").string();
  ASSERT_EQ(run_capo({"generate", "1f1b", "--ranks", "16", "--microbatches", "8192", "-o", order})
                .exit_code,
            0);
  for (const std::string command : {"check", "simulate"}) {
    const Outcome beyond = run_capo({command, order, "--max-memory", "6MiB"});
    EXPECT_EQ(beyond.exit_code, 4) << beyond.out << beyond.err;
    EXPECT_EQ(beyond.err,
              "error: more memory is needed than 6 MiB\n"
              "  help: raise the limit with --max-memory\n");
    EXPECT_EQ(beyond.out, "");
    EXPECT_EQ(run_capo({command, order, "--max-memory", "2GiB"}).exit_code, 0);
  }
  const Outcome wrong = run_capo({"check", order, "--max-memory", "much"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--max-memory"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace capo
