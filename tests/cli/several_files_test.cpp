// `capo check A B ...`: a report each, under the file's name, and the worst of their exit codes.

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

class SeveralFiles : public ::testing::Test {
 protected:
  SeveralFiles() {
    folder_.write("good.te", "[1, -1]\n");
    folder_.write("bad.te", "[1, -1, -1]\n");
    folder_.write("broken.te", "[1, -1\n");
  }

  [[nodiscard]] Outcome check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "check");
    return run_capo(arguments, {.directory = folder_.path()});
  }

  ScratchFolder folder_;
};

TEST_F(SeveralFiles, HaveAReportEachUnderTheirNames) {
  const Outcome outcome = check({"good.te", "bad.te", "broken.te"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "good.te:\n" + check({"good.te"}).out + "\nbad.te:\n" +
                             check({"bad.te"}).out + "\nbroken.te:\n" + check({"broken.te"}).out +
                             "\n3 files: 1 accepted, 1 rejected, 1 without a verdict\n");
}

TEST_F(SeveralFiles, GiveTheWorstOfTheirExitCodes) {
  EXPECT_EQ(check({"good.te", "good.te"}).exit_code, 0);
  EXPECT_EQ(check({"bad.te", "good.te"}).exit_code, 1);
  EXPECT_EQ(check({"broken.te", "bad.te"}).exit_code, 3);
  EXPECT_EQ(check({"good.te", "bad.te", "--max-entries", "2"}).exit_code, 4);
}

TEST_F(SeveralFiles, AreAnArrayInJson) {
  const Outcome outcome = check({"good.te", "broken.te", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 3);
  const json reports = json::parse(outcome.out);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["verdict"], "accepted");
  EXPECT_EQ(reports[0]["input"]["file"], "good.te");
  EXPECT_EQ(reports[1]["verdict"], "no-verdict");
  EXPECT_EQ(reports[1]["input"]["file"], "broken.te");
}

TEST_F(SeveralFiles, AreOneRunInSarif) {
  const json log = json::parse(check({"bad.te", "broken.te", "--format", "sarif"}).out);
  ASSERT_EQ(log["runs"].size(), 1U);
  std::vector<std::string> files;
  for (const json& result : log["runs"][0]["results"]) {
    files.push_back(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]);
  }
  EXPECT_EQ(files, (std::vector<std::string>{"bad.te", "broken.te"}));
  EXPECT_EQ(log["runs"][0]["tool"]["driver"]["rules"].size(), 2U);
}

TEST_F(SeveralFiles, OneThatCannotBeReadStopsNoOther) {
  const Outcome outcome = check({"none.te", "good.te", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(holds(outcome.err, "cannot read none.te")) << outcome.err;
  const json reports = json::parse(outcome.out);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0]["input"]["file"], "good.te");
  EXPECT_EQ(json::parse(check({"none.te", "no.te", "--format", "json"}).out), json::array());
}

TEST_F(SeveralFiles, ShareWhatIsDeclared) {
  folder_.write("model.json", R"({"plan": "te", "budget": "80GiB"})");
  const Outcome outcome =
      run_capo({"check", "good.te", "good.te", "--model", "-"},
               {.input = folder_.read("model.json"), .directory = folder_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(holds(outcome.out, "plan te")) << outcome.out;
}

// --- -o ------------------------------------------------------------------------------------------

TEST_F(SeveralFiles, AReportMayGoToAFile) {
  const Outcome outcome = check({"bad.te", "-o", "report.txt"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(folder_.read("report.txt"), check({"bad.te"}).out);
  EXPECT_EQ(check({"good.te", "bad.te", "-o", "both.json", "--format", "json"}).exit_code, 1);
  EXPECT_EQ(json::parse(folder_.read("both.json")).size(), 2U);
  EXPECT_EQ(check({"good.te", "-o", "none/report.txt"}).exit_code, 5);
}

// --- --override ----------------------------------------------------------------------------------

TEST_F(SeveralFiles, AFlagWinsOverTheModelFileIfItIsToldSo) {
  folder_.write("model.json", R"({"plan": "te", "budget": "80GiB", "topology": "loop",
      "modules": {"mlp": {"kind": "grouped-mlp"}}, "layers": "mlp"})");
  const std::vector<std::vector<std::string>> flags{
      {"--plan", "safe"}, {"--budget", "1GiB"}, {"--topology", "chain"}, {"--modules", "linear"}};
  for (std::vector<std::string> arguments : flags) {
    arguments.insert(arguments.begin(), {"good.te", "--model", "model.json"});
    const Outcome refused = check(arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments[3];
    EXPECT_TRUE(holds(refused.err, "--override")) << refused.err;
    arguments.emplace_back("--override");
    EXPECT_EQ(check(arguments).exit_code, 0) << check(arguments).err << check(arguments).out;
  }
  EXPECT_TRUE(holds(check({"good.te", "--model", "model.json", "--plan", "safe", "--override"}).out,
                    "plan safe"));
}

}  // namespace
}  // namespace capo
