// The program itself is asked here about orders with one mistake.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace capo::testing_support {
namespace {

const std::string kBroken = CAPO_SOURCE_DIR "/examples/te2376/broken.te";

TEST(CheckCured, TheSlipIsCalledByItsName) {
  const Outcome outcome = run_capo({"check", kBroken});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("error[S15]: `-1` at index 62 is probably `-2`"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("rejected: 1 error"), std::string::npos) << outcome.out;
}

TEST(CheckCured, AllShowsWhatIsFoundAsItStands) {
  const Outcome outcome = run_capo({"check", kBroken, "--all"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("at index 70 is a backward of chunk 1 without a forward"),
            std::string::npos)
      << outcome.out;
}

TEST(CheckCured, ProgramsGetTheSlipBeforeWhatFollowsFromIt) {
  const auto found = nlohmann::json::parse(run_capo({"check", kBroken, "--format", "json"}).out);
  const auto& findings = found.at("diagnostics");
  ASSERT_EQ(findings.size(), 2U);
  const auto& slip = findings.front();
  EXPECT_EQ(slip.at("message"), "`-1` at index 62 is probably `-2`");
  EXPECT_EQ(slip.at("notes").front().at("text"),
            "as it stands, `-1` at index 70 is a backward of chunk 1 without a forward: the chunk "
            "has 8 forwards and 9 backwards");
  EXPECT_EQ(slip.at("witness").at("tasks").front().at("index"), 62);
  EXPECT_EQ(findings.back().at("witness").at("tasks").front().at("index"), 70);
  EXPECT_EQ(found.at("findings").at("errors"), 2);

  const Outcome sarif = run_capo({"check", kBroken, "--format", "sarif"});
  const auto results = nlohmann::json::parse(sarif.out).at("runs").front().at("results");
  EXPECT_EQ(results.size(), 2U);
}

TEST(CheckCured, ALineOfABatchHasTheSlipAndCuresThatWork) {
  const ScratchFolder folder;
  const std::string order = read_file(kBroken);
  std::string line = order.substr(order.find('['));
  std::replace(line.begin(), line.end(), '\n', ' ');
  folder.write("lines.jsonl", "{\"order\":" + line + "}\n{\"order\":[1, 2, -1, -1]}\n");
  const Outcome outcome =
      run_capo({"check", "--batch", "lines.jsonl"}, {.directory = folder.path()});
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 2U) << outcome.err;
  const auto slipped = nlohmann::json::parse(lines[0]).at("diagnostics");
  EXPECT_EQ(slipped.front().at("message"), "`-1` at index 62 is probably `-2`");
  EXPECT_TRUE(slipped.back().at("help").is_null()) << "the edit at index 70 does not cure";
  const auto one = nlohmann::json::parse(lines[1]).at("diagnostics");
  EXPECT_EQ(one.front().at("help").at("edits").front().at("replacement"), "-2");
}

TEST(CheckCured, OtherCommandsPrintNoCureThatWasNotTried) {
  const Outcome cured = run_capo({"run", "--order", "[1, 2, -1, -1]", "--device", "host"});
  EXPECT_NE(cured.err.find("is `-2` meant?"), std::string::npos) << cured.err;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", "--device", "host"}, {"simulate"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(kBroken);
    const Outcome outcome = run_capo(arguments);
    EXPECT_NE(outcome.err.find("at index 70 is a backward of chunk 1 without a forward"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("is `-2` meant?"), std::string::npos) << outcome.err;
  }
}

// Nobody tries an edit of one of two texts.
TEST(CheckCured, OfAnOrderReplayedFromAnotherFileNoEditIsPrinted) {
  const ScratchFolder folder;
  folder.write("capture.te", "[1, 1, -1, -1]");
  folder.write("replay.te", "[1, 2, -1, -1]");
  const Outcome outcome =
      run_capo({"check", "capture.te", "--replay", "replay.te"}, {.directory = folder.path()});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("`-2`"), std::string::npos) << outcome.out;
}

// The edit at index 70 leaves the order rejected by another rule.
TEST(CheckCured, ACureThatDoesNotCureIsNotPrinted) {
  const Outcome outcome = run_capo({"check", kBroken, "--all"});
  EXPECT_EQ(outcome.out.find("is `-2` meant?"), std::string::npos) << outcome.out;
}

TEST(CheckCured, FixWritesTheOrderThatIsAccepted) {
  const ScratchFolder folder;
  const std::string fixed = folder.path() / "fixed.te";
  EXPECT_EQ(run_capo({"check", kBroken, "--fix", fixed}).exit_code, 1);
  EXPECT_EQ(run_capo({"check", fixed}).exit_code, 0);
  EXPECT_NE(folder.read("fixed.te").find("-3, -3.5, -2, -2.5, -1, -1.5"), std::string::npos)
      << folder.read("fixed.te");
}

TEST(CheckCured, FixWritesNothingIfNoEditMakesItAcceptable) {
  const ScratchFolder folder;
  const std::string fixed = folder.path() / "fixed.te";
  EXPECT_EQ(run_capo({"check", "--order", "[1, 1, 2]", "--fix", fixed}).exit_code, 1);
  EXPECT_FALSE(std::ifstream(fixed).is_open());
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", "--fix", fixed}).exit_code, 0);
  EXPECT_FALSE(std::ifstream(fixed).is_open());
  const Outcome no_order = run_capo({"check", "--fix", kBroken});
  EXPECT_EQ(no_order.exit_code, 2);
  EXPECT_TRUE(holds(no_order.err, "--fix: names the file that is written, and no order is named"))
      << no_order.err;
}

}  // namespace
}  // namespace capo::testing_support
