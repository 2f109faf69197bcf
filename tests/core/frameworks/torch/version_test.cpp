#include "core/frameworks/torch/version.h"

#include "core/frameworks/torch/table.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace capo::torch {
namespace {

TEST(TorchVersions, DifferAndEndWithTheNewest) {
  std::set<std::string_view> releases;
  for (const Version& version : kVersions) {
    EXPECT_NE(version.lower, nullptr);
    EXPECT_NE(version.prepare, nullptr);
    EXPECT_TRUE(version.number.starts_with(version.release));
    EXPECT_FALSE(version.date.empty());
    EXPECT_FALSE(version.commit.empty());
    EXPECT_FALSE(version.words.empty());
    releases.insert(version.release);
  }
  EXPECT_EQ(releases.size(), kVersions.size());
  EXPECT_EQ(kNewest.release, kVersions.back().release);
}

TEST(TorchVersions, DecideWhichWordsACellHas) {
  constexpr std::array<TorchWord, 2> kTwo{
      {{"SEND_F", TorchType::SendForward}, {"F", TorchType::Forward}}};
  Version other = kNewest;
  other.words = kTwo;
  EXPECT_EQ(read_as_torch("0B1").form, TorchCell::Form::Single);
  EXPECT_EQ(read_as_torch("0B1", other).form, TorchCell::Form::Refused);
  EXPECT_EQ(read_as_torch("0F1", other).repr, "0F1");
}

}  // namespace
}  // namespace capo::torch
