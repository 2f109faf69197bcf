// `capo check --profile`: what TransformerEngine, Megatron and PyTorch would say, and that the
// verdict is capo's own.

#include "tests/support/check_order.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

TEST(CheckProfile, NoneIsAskedByDefault) {
  EXPECT_EQ(report_of("[1, -1]").at("profiles"), json::object());
  EXPECT_EQ(report_of("[1, -1]", {"--profile", "sound"}).at("profiles"), json::object());
}

TEST(CheckProfile, SeveralMayBeAsked) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--profile", "sound,te,mcore,torch"},
                                             {"--profile", "torch,mcore,te"},
                                             {"--profile", "te,te,mcore,torch"}}) {
    EXPECT_EQ(keys_of(report_of("[1, -1]", flags).at("profiles")),
              (std::set<std::string>{"te", "mcore", "torch"}));
  }
}

// `capo check --profile te plan.te` is what one types.
TEST(CheckProfile, LeavesTheNextWordToTheInput) {
  const Outcome outcome = run_capo({"check", "--profile", "te", "accepted-lf.te"},
                                   {.directory = CAPO_SOURCE_DIR "/tests/corpus/input/line-ends"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, "profile te: accepts")) << outcome.out;
}

TEST(CheckProfile, NeverChangesTheVerdict) {
  for (const std::string order : {"[1, -1]", "[1]", "[1, 1, -1, -1, -1.5, -1.5]", "0F0,0B0x"}) {
    SCOPED_TRACE(order);
    EXPECT_EQ(check_order(order, {"--profile", "te,mcore,torch"}).exit_code,
              check_order(order).exit_code);
  }
}

TEST(CheckProfile, RightAndRefusedThereIsSaid) {
  const json report = report_of("[1, 1, -1, -1, -1.5, -1.5]", {"--profile", "te"});
  EXPECT_EQ(report.at("verdict"), "accepted");
  const json te = report.at("profiles").at("te");
  EXPECT_EQ(te.at("accepts"), false);
  EXPECT_EQ(te.at("error_kind"), "torch.RuntimeError");
  EXPECT_EQ(te.at("disagreement"), "right and refused there");
  EXPECT_TRUE(holds(check_order("[1, 1, -1, -1, -1.5, -1.5]", {"--profile", "te"}).out,
                    "profile te: refuses (right and refused there)\n"));
}

TEST(CheckProfile, AcceptedThereAndWrongIsSaid) {
  const json report = report_of("[1, -1]", {"--profile", "te", "--microbatches", "2"});
  EXPECT_EQ(report.at("verdict"), "rejected");
  EXPECT_EQ(report.at("profiles").at("te").at("accepts"), true);
  EXPECT_EQ(report.at("profiles").at("te").at("disagreement"), "accepted there and wrong");
}

TEST(CheckProfile, MegatronIsStricterThanTe) {
  const json profiles =
      report_of("[2, 1, -1, -2, -2.5, -1.5]", {"--profile", "te,mcore"}).at("profiles");
  EXPECT_EQ(profiles.at("te").at("accepts"), true);
  EXPECT_EQ(profiles.at("mcore").at("accepts"), false);
  EXPECT_EQ(profiles.at("mcore").at("error_kind"), "mcore.order");
}

TEST(CheckProfile, MegatronsConfigurationIsJudgedWhereItIsGiven) {
  const auto mcore = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--profile", "mcore", "--microbatches", "2"});
    return report_of("[1, 1, -1, -1]", flags).at("profiles").at("mcore");
  };
  EXPECT_EQ(mcore({}).at("accepts"), true);
  EXPECT_EQ(mcore({"--pp", "2"}).at("accepts"), true);
  EXPECT_EQ(mcore({"--pp", "2", "--vp", "2"}).at("accepts"), true);
  EXPECT_EQ(mcore({"--pp", "4", "--vp", "2"}).at("error_kind"), "mcore.configuration");
  EXPECT_EQ(mcore({"--pp", "2", "--vp", "2", "--group-size", "3"}).at("error_kind"),
            "mcore.configuration");
  EXPECT_EQ(mcore({"--pp", "2", "--ep-overlap"}).at("error_kind"), "mcore.configuration");
  EXPECT_EQ(mcore({"--pp", "2", "--vp", "2", "--ep-overlap"}).at("accepts"), true);
}

TEST(CheckProfile, MegatronsFlagsNeedEachOther) {
  EXPECT_EQ(check_order("[1, -1]", {"--pp", "2"}).exit_code, 2);
  EXPECT_EQ(check_order("[1, -1]", {"--vp", "2"}).exit_code, 2);
  EXPECT_EQ(check_order("[1, -1]", {"--group-size", "2"}).exit_code, 2);
  EXPECT_EQ(check_order("[1, -1]", {"--ep-overlap"}).exit_code, 2);
  EXPECT_EQ(check_order("[1, -1]", {"--pp", "0", "--microbatches", "1"}).exit_code, 2);
}

// With the reuse of buffers TE looks for the forward earlier than without.
TEST(CheckProfile, TeWithReuseStopsInTheReuse) {
  const auto reason = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--profile", "te"});
    return report_of("[-1, 1]", flags).at("profiles").at("te").at("reason").get<std::string>();
  };
  EXPECT_TRUE(holds(reason({}), "warm-up"));
  EXPECT_TRUE(holds(reason({"--te-reuse"}), "reuse"));
}

TEST(CheckProfile, TorchSaysWhatItReads) {
  const json torch = report_of("0F0,0B0x", {"--profile", "torch"}).at("profiles").at("torch");
  EXPECT_EQ(torch.at("reads"),
            json::array({{{"rank", 0}, {"index", 1}, {"text", "0B0x"}, {"torch", "0B0"}}}));
  EXPECT_EQ(torch.at("accepts"), true);
  EXPECT_EQ(torch.at("disagreement"), "accepted there and wrong");
}

TEST(CheckProfile, TorchJudgesATable) {
  EXPECT_EQ(report_of("0F0,0B0", {"--profile", "torch"}).at("profiles").at("torch").at("accepts"),
            true);
  const json refused = report_of("0B0,0F0", {"--profile", "torch"}).at("profiles").at("torch");
  EXPECT_EQ(refused.at("accepts"), false);
  EXPECT_TRUE(refused.at("error_kind").get<std::string>().starts_with("torch.")) << refused;
}

TEST(CheckProfile, OfAVersionGoesByTheNameItWasAskedBy) {
  const json profiles =
      report_of("0F0,0B0", {"--profile", "torch@2.11,torch,torch@2.15,te@2.19,mcore@0.19"})
          .at("profiles");
  EXPECT_EQ(keys_of(profiles),
            (std::set<std::string>{"torch@2.11", "torch", "torch@2.15", "te@2.19", "mcore@0.19"}));
  EXPECT_EQ(profiles.at("torch@2.11").at("version"), "2.11.0");
  EXPECT_EQ(profiles.at("torch@2.15").at("version"), "2.15.0");
  EXPECT_EQ(profiles.at("torch"), profiles.at("torch@2.15"));
  EXPECT_EQ(profiles.at("te@2.19").at("version"), "2.19");
}

// A table without waits for its sends runs under 2.11 and not under 2.15; one with them the other
// way round, since 2.11 reads `0WAIT_SEND_F0` as a weight gradient.
TEST(CheckProfile, OfTwoVersionsOfTorchDifferAboutWaits) {
  const auto of = [](const std::string& table) {
    return report_of(table, {"--profile", "torch@2.11,torch@2.15"}).at("profiles");
  };
  const json without = of("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0");
  EXPECT_EQ(without.at("torch@2.11").at("accepts"), true);
  EXPECT_EQ(without.at("torch@2.11").at("lower"), nullptr);
  EXPECT_EQ(without.at("torch@2.15").at("accepts"), false);
  EXPECT_EQ(without.at("torch@2.15").at("lower"),
            "ValueError: Pipeline sends at rank 0 have no matching wait: 0SEND_F0");
  const json with =
      of("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0");
  EXPECT_EQ(with.at("torch@2.15").at("accepts"), true);
  EXPECT_EQ(with.at("torch@2.15").at("simulate"), "ok");
  EXPECT_EQ(with.at("torch@2.15").at("slots"), json({1, 1}));
  EXPECT_EQ(with.at("torch@2.11").at("accepts"), false);
  EXPECT_EQ(with.at("torch@2.11").at("reads").at(0),
            (json{{"rank", 0}, {"index", 4}, {"text", "0WAIT_SEND_F0"}, {"torch", "0W"}}));
}

TEST(Profiles, AreListedWithVersionDateAndCommit) {
  const Outcome outcome = run_capo({"profiles"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(holds(outcome.out, "te@2.19     2.19    2026-08-22  d0067d0da\n")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "te@2.20     2.20    2026-10-05  v2.20.2\n")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "torch@2.11  2.11.0  2026-03-23  70d99e998\n"));
  EXPECT_TRUE(holds(outcome.out, "torch@2.15  2.15.0  2026-10-27  d0f2af8b6\n"));
}

}  // namespace
}  // namespace capo
