#include "core/frameworks/te/version.h"

#include "core/frameworks/te/contract.h"
#include "core/frameworks/te/predict.h"

#include <gtest/gtest.h>

#include <set>

namespace capo::te {
namespace {

TEST(TeVersions, DifferAndEndWithTheNewest) {
  std::set<std::string_view> commits;
  for (const Version& version : kVersions) {
    EXPECT_FALSE(version.release.empty());
    EXPECT_FALSE(version.date.empty());
    EXPECT_NE(version.cells, nullptr);
    commits.insert(version.commit);
  }
  EXPECT_EQ(commits.size(), kVersions.size());
  EXPECT_EQ(kNewest.commit, kVersions.back().commit);
}

TEST(TeVersions, SayHowASecondBackwardFails) {
  TeList list;
  for (const double value : {1, 1, 2, 2, -1, -1, -1, -2}) list.entries.push_back({.value = value});
  const auto raised = [&](const Version& version) {
    return predict(list, {}, {}, {.version = &version}).value().kind;
  };
  EXPECT_EQ(raised(kVersions.front()), Kind::PyAttributeError);
  EXPECT_EQ(raised(kVersions.back()), Kind::PyKeyError);
}

TEST(TeVersions, SayWhetherOutputsStayBeforeCapture) {
  EXPECT_TRUE(kVersions.front().warm_up_keeps_outputs);
  EXPECT_FALSE(kNewest.warm_up_keeps_outputs);
}

TEST(TeVersions, HoldTheGradientContract) {
  using gradients::GradientMode;
  const auto cell = gradients::contract(ModuleKind::Linear, GradientMode::Delay,
                                        gradients::Contract::Te, kNewest);
  EXPECT_EQ(cell,
            gradients::contract(ModuleKind::Linear, GradientMode::Delay, gradients::Contract::Te));
  EXPECT_EQ(
      gradients::contract_page(kNewest).find("TransformerEngine v2.20.2") != std::string::npos,
      true);
}

}  // namespace
}  // namespace capo::te
