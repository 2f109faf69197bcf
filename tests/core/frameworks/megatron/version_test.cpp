#include "core/frameworks/megatron/version.h"

#include <gtest/gtest.h>

#include <set>

namespace capo::megatron {
namespace {

TEST(MegatronVersions, DifferAndEndWithTheNewest) {
  std::set<std::string_view> commits;
  for (const Version& version : kVersions) {
    EXPECT_FALSE(version.release.empty());
    EXPECT_FALSE(version.date.empty());
    commits.insert(version.commit);
  }
  EXPECT_EQ(commits.size(), kVersions.size());
  EXPECT_EQ(kNewest.commit, kVersions.back().commit);
}

}  // namespace
}  // namespace capo::megatron
