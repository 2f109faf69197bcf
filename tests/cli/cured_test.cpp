// The program itself is asked here about orders with one mistake.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>

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
}

}  // namespace
}  // namespace capo::testing_support
