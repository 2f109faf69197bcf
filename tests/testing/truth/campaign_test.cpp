// A campaign writes the same lines whatever the jobs, goes on where it was killed, and stops at a
// verdict that is wrong. Its cases and its judge are given, so that a wrong verdict can be planted.

#include "testing/truth/campaign.h"

#include "core/base/assert.h"
#include "run/host/host_engine.h"
#include "testing/truth/cases.h"
#include "testing/truth/judge.h"
#include "testing/truth/lines_file.h"
#include "tests/support/scratch_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::ScratchFolder;

constexpr std::uint64_t kDrawn = 20'000;

// Real cases, from those that are drawn.
Campaign campaign_into(const std::string& lines, std::uint64_t orders, unsigned jobs) {
  Campaign campaign{.orders = orders, .jobs = jobs, .lines = lines, .header = R"({"seed":1})"};
  campaign.make = [](std::uint64_t number) {
    TruthCase of = truth_case(1, kDrawn + number);
    of.number = number;
    return of;
  };
  campaign.judge = [](const TruthCase& of) -> Result<TruthLine> {
    run::host::HostEngine engine;
    return judge_truth(of, engine);
  };
  return campaign;
}

// Lines that cost nothing; `wrong` is the number of the one that disagrees.
Campaign cheap_campaign(const std::string& lines, std::uint64_t wrong, unsigned jobs = 1) {
  Campaign campaign{.orders = 50, .jobs = jobs, .lines = lines, .header = R"({"seed":1})"};
  campaign.make = [](std::uint64_t number) { return TruthCase{.number = number}; };
  campaign.judge = [wrong](const TruthCase& of) {
    return TruthLine{.number = of.number,
                     .order = "[1, -1]",
                     .verdict = "accepted",
                     .came = of.number == wrong ? Came::Disagrees : Came::Right};
  };
  return campaign;
}

constexpr std::uint64_t kNone = ~std::uint64_t{0};

TEST(Campaign, WritesTheSameLinesWhateverTheJobs) {
  const ScratchFolder folder;
  for (const unsigned jobs : {1U, 2U, 8U}) {
    const std::string name = fmt::format("{}.jsonl", jobs);
    const auto result = run_campaign(campaign_into(folder.write(name, ""), 40, jobs));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->tally.lines, 40U);
    EXPECT_FALSE(result->disagreement);
  }
  EXPECT_EQ(folder.read("1.jsonl"), folder.read("2.jsonl"));
  EXPECT_EQ(folder.read("1.jsonl"), folder.read("8.jsonl"));
}

// Every byte of a file is a place where a kill can fall; twelve lines have a first, a last and
// numbers of two digits.
TEST(Campaign, GoesOnWhereAKillLeftItWhereverThatWas) {
  const auto resumed = [](const std::string& lines, unsigned jobs) {
    Campaign campaign = cheap_campaign(lines, kNone, jobs);
    campaign.orders = 12;
    return run_campaign(campaign);
  };
  const ScratchFolder folder;
  ASSERT_TRUE(resumed(folder.write("whole", ""), 1));
  const std::string whole = folder.read("whole");
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    const std::string path = folder.write("killed", whole.substr(0, bytes));
    const auto result = resumed(path, bytes % 2 == 0 ? 1 : 3);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->tally.lines, 12U) << bytes;
    ASSERT_EQ(folder.read("killed"), whole) << bytes;
  }
}

TEST(Campaign, StopsAtTheFirstDisagreementByNumber) {
  for (const unsigned jobs : {1U, 4U}) {
    const ScratchFolder folder;
    const auto result = run_campaign(cheap_campaign(folder.write("lines", ""), 17, jobs));
    ASSERT_TRUE(result);
    ASSERT_TRUE(result->disagreement);
    EXPECT_EQ(result->disagreement->number, 17U);
    EXPECT_EQ(result->tally.lines, 18U);
    const std::string text = folder.read("lines");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 18);
  }
}

TEST(Campaign, JudgesALastLineThatDisagreedAgain) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "");
  ASSERT_TRUE(run_campaign(cheap_campaign(path, 17)));
  const auto still = run_campaign(cheap_campaign(path, 17));
  EXPECT_EQ(still->resumed, 17U);
  EXPECT_TRUE(still->disagreement);
  const auto cured = run_campaign(cheap_campaign(path, kNone));
  EXPECT_EQ(cured->resumed, 17U);
  EXPECT_FALSE(cured->disagreement);
  EXPECT_EQ(cured->tally.lines, 50U);
}

TEST(Campaign, CountsTheLinesThatWereThere) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "");
  ASSERT_TRUE(run_campaign(cheap_campaign(path, kNone)));
  Campaign longer = cheap_campaign(path, kNone);
  longer.orders = 60;
  const auto result = run_campaign(longer);
  EXPECT_EQ(result->resumed, 50U);
  EXPECT_EQ(result->tally.lines, 60U);
}

TEST(Campaign, DoesNotTouchLinesOfAnotherOne) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "{\"seed\":2}\n");
  const auto result = run_campaign(cheap_campaign(path, kNone));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Unreadable);
  EXPECT_EQ(folder.read("lines"), "{\"seed\":2}\n");
  const std::string gap = folder.write("gap", "{\"seed\":1}\n{\"n\":1}\n");
  ASSERT_FALSE(run_campaign(cheap_campaign(gap, kNone)));
  EXPECT_EQ(folder.read("gap"), "{\"seed\":1}\n{\"n\":1}\n");
}

TEST(Campaign, DoesNotTouchWhatHasNoLineBreak) {
  const ScratchFolder folder;
  for (const std::string text : {"somebody's notes", "{\"seed\":2}", "{\"seed\":1}}"}) {
    const auto result = run_campaign(cheap_campaign(folder.write("lines", text), kNone));
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::Unreadable);
    EXPECT_EQ(folder.read("lines"), text);
  }
}

// A case that nobody could judge has no line, and is the first one when the campaign goes on.
TEST(Campaign, EndsWhereTheMachineRefuses) {
  for (const unsigned jobs : {1U, 4U}) {
    const ScratchFolder folder;
    const std::string path = folder.write("lines", "");
    Campaign campaign = cheap_campaign(path, kNone, jobs);
    campaign.judge = [sound = campaign.judge](const TruthCase& of) -> Result<TruthLine> {
      if (of.number < 17) return sound(of);
      return Error{.kind = ErrorKind::Environment, .message = "no memory", .help = "buy some"};
    };
    const auto refused = run_campaign(campaign);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), (Error{.kind = ErrorKind::Environment,
                                      .message = "order 17: no memory",
                                      .help = "buy some"}));
    const auto cured = run_campaign(cheap_campaign(path, kNone));
    EXPECT_EQ(cured->resumed, 17U);
    EXPECT_EQ(cured->tally.lines, 50U);
  }
}

TEST(Campaign, SaysWhyLinesCannotBeWritten) {
  const ScratchFolder folder;
  const auto result =
      run_campaign(cheap_campaign((folder.path() / "missing" / "lines").string(), kNone));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Environment);
}

// One that could be made has a line of its own (judge_test.cpp).
TEST(Campaign, NamesTheNumberAtWhichCapoBreaksWhereACaseIsDrawn) {
  for (const unsigned jobs : {1U, 4U}) {
    const ScratchFolder folder;
    const std::string path = folder.write("lines", "");
    Campaign campaign = cheap_campaign(path, kNone, jobs);
    campaign.make = [sound = campaign.make](std::uint64_t number) {
      if (number == 17) throw InternalError("capo's own invariant does not hold");
      return sound(number);
    };
    const auto result = run_campaign(campaign);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_TRUE(result->disagreement);
    EXPECT_EQ(result->disagreement->number, 17U);
    EXPECT_EQ(result->disagreement->reason, "capo's own invariant does not hold");
    EXPECT_EQ(result->tally.disagreements(), 1U);
    const auto cured = run_campaign(cheap_campaign(path, kNone));
    ASSERT_TRUE(cured) << cured.error().message;
    EXPECT_EQ(cured->resumed, 17U);
  }
}

TEST(Campaign, LeavesAFileAloneThatAnotherOneAddsTo) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "");
  {
    const auto other = LinesFile::open(path, R"({"seed":1})");
    ASSERT_TRUE(other);
    const auto result = run_campaign(cheap_campaign(path, kNone));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error(), (Error{.kind = ErrorKind::Environment,
                                     .message = path + ": another capo-fuzz adds lines to it",
                                     .help = "wait for it, or write to another file"}));
    EXPECT_EQ(folder.read("lines"), "{\"seed\":1}\n");
  }
  EXPECT_TRUE(run_campaign(cheap_campaign(path, kNone)));
}

TEST(Campaign, RefusesLinesInWhatIsNoRegularFile) {
  const ScratchFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {pipe, folder.path().string(), std::string("/dev/full"), std::string("/dev/zero")}) {
    const auto result = run_campaign(cheap_campaign(path, kNone));
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().kind, ErrorKind::Unreadable);
    EXPECT_EQ(result.error().message, path + ": this is no regular file");
  }
}

TEST(Campaign, TellsWhatItGoesOnBehindBeforeItDoes) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "");
  std::vector<std::string> told;
  const auto tells = [&](Campaign campaign) {
    campaign.resumed = [&](std::uint64_t lines) { told.push_back(fmt::format("{} lines", lines)); };
    campaign.progress = [&](std::uint64_t done) { told.push_back(fmt::format("{} done", done)); };
    return campaign;
  };
  Campaign first = tells(cheap_campaign(path, kNone));
  first.orders = 1;
  ASSERT_TRUE(run_campaign(first));
  Campaign second = tells(cheap_campaign(path, kNone));
  second.orders = 2;
  ASSERT_TRUE(run_campaign(second));
  EXPECT_EQ(told, (std::vector<std::string>{"1 done", "1 lines", "2 done"}));
}

TEST(Campaign, RefusesALineOfWhichTheVerdictIsNone) {
  const ScratchFolder folder;
  ASSERT_TRUE(run_campaign(cheap_campaign(folder.write("lines", ""), kNone)));
  std::string text = folder.read("lines");
  text.replace(text.find("\"accepted\""), 10, "\"perhaps\"");
  const std::string path = folder.write("lines", text);
  const auto result = run_campaign(cheap_campaign(path, kNone));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, path + ": line 2 is none of a campaign's");
}

TEST(Campaign, CountsADisagreementAmongTheLinesThatWereThere) {
  const ScratchFolder folder;
  const std::string path = folder.write("lines", "");
  ASSERT_TRUE(run_campaign(cheap_campaign(path, kNone)));
  std::string text = folder.read("lines");
  text.replace(text.find("\"right\""), 7, "\"disagrees\"");
  const auto result = run_campaign(cheap_campaign(folder.write("lines", text), kNone));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->disagreement);
  EXPECT_EQ(result->tally.disagreements(), 1U);
}

TEST(Campaign, TellsHowFarItIsInTheOrderOfNumbers) {
  std::vector<std::uint64_t> told;
  Campaign campaign = cheap_campaign("", kNone, 4);
  campaign.progress = [&](std::uint64_t done) { told.push_back(done); };
  ASSERT_TRUE(run_campaign(campaign));
  ASSERT_EQ(told.size(), 50U);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 50U);
}

}  // namespace
}  // namespace capo::testing
