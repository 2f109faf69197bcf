// A pasted case reads back as it was declared, and means the same order.

#include "testing/truth/paste.h"

#include "core/text/limits.h"
#include "core/text/model_reader.h"
#include "testing/model_text.h"
#include "testing/truth/cases.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

TEST(Paste, KeepsEveryModuleFlagAndPlan) {
  for (std::uint64_t number = 0; number < 400; ++number) {
    const TruthCase of = truth_case(1, number % 2 == 0 ? number : 40'000 + number);
    const auto read = read_model(model_text(of.declared), Limits{});
    ASSERT_TRUE(read) << model_text(of.declared);
    EXPECT_EQ(read->modules, of.declared.modules) << model_text(of.declared);
    EXPECT_EQ(read->plan, of.declared.plan) << model_text(of.declared);
    EXPECT_EQ(read->environment, of.declared.environment) << model_text(of.declared);
    EXPECT_TRUE(of.declared.groups.empty());
  }
}

TEST(Paste, IsThreeCommands) {
  TruthCase of = truth_case(1, 3);
  of.seed = 7;
  const std::string text = paste_text(of, "cuda");
  EXPECT_EQ(text.find("--replicas"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("cat > case.order <<'END'\ncapo 1\n")) << text;
  EXPECT_NE(text.find("END\ncat > case.model <<'END'\n{\"schema\":1,"), std::string::npos) << text;
  EXPECT_NE(text.find("END\ncapo run case.order --model case.model --device cuda --graphs "
                      "per-action --replays 3 --seed 7 --sizes "),
            std::string::npos)
      << text;
}

TEST(Paste, SaysHowManyReplicasWereRun) {
  TruthCase of = truth_case(1, 3);
  of.replicas = 3;
  EXPECT_NE(paste_text(of, "host").find(" --replicas 3"), std::string::npos);
}

}  // namespace
}  // namespace capo::testing
