// The oracle's first fault, against lists that one can judge by hand: one for each rule and each
// place that docs/model.md names.

#include "testing/oracle/first_fault.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

namespace capo::oracle {

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.rule << " at " << fault.position;
}

namespace {

std::vector<Number> list_of(const std::vector<double>& values) {
  std::vector<Number> numbers;
  for (const double value : values)
    numbers.push_back({.value = value, .floating = std::floor(value) != value});
  return numbers;
}

Fault fault_of(const std::vector<double>& values) {
  return first_fault(list_of(values)).value_or(Fault{});
}

constexpr int kWhole = Fault::kWholeList;

TEST(FirstFault, IsNoneOfWhatIsSound) {
  for (const std::vector<double>& values : {std::vector<double>{1, -1},
                                            {2, 1, -1, -2},
                                            {1, -1, -1.5, 1, -1, -1.5},
                                            {1, 2, -1, -1.5, -2}}) {
    EXPECT_FALSE(first_fault(list_of(values)));
    EXPECT_TRUE(sound(list_of(values), std::nullopt, {}));
  }
}

TEST(FirstFault, OfANumberStandsAtIt) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fault_of({1, nan}), (Fault{1, "S01"}));
  EXPECT_EQ(fault_of({1, -1.25}), (Fault{1, "S02"}));
  EXPECT_EQ(first_fault({{.value = 1, .floating = true}, {.value = -1}}), (Fault{0, "S03"}));
  EXPECT_EQ(fault_of({1, 0}), (Fault{1, "S04"}));
  EXPECT_EQ(fault_of({1, -0.5}), (Fault{1, "S04"}));
  EXPECT_EQ(fault_of({1, 1.5}), (Fault{1, "S05"}));
}

TEST(FirstFault, OfAListWithoutAForwardStandsAtItsBeginning) {
  EXPECT_EQ(fault_of({}), (Fault{kWhole, "S06"}));
  EXPECT_EQ(fault_of({-1, -1.5}), (Fault{0, "S06"}));
}

TEST(FirstFault, OfChunks) {
  EXPECT_EQ(fault_of({1, -1, 4}), (Fault{2, "S12"})) << "three entries, no four chunks";
  EXPECT_EQ(fault_of({1, -1, 3, -3}), (Fault{2, "S13"})) << "the first entry of chunk 3";
  EXPECT_EQ(fault_of({3, 1, -1, -3}), (Fault{0, "S13"}));
  EXPECT_EQ(fault_of({2, -2, 4}), (Fault{0, "S13"})) << "chunk 4 is unknown, chunk 2 the largest";
}

TEST(FirstFault, OfForwards) {
  EXPECT_EQ(fault_of({1, 2, 2, -2, -1}), (Fault{2, "S14"}))
      << "one forward or two: one, since more chunks have one backward";
  EXPECT_EQ(fault_of({1, -1, 2, -2, 2}), (Fault{4, "S14"})) << "one too many";
  EXPECT_EQ(fault_of({1, 1, -1, -1, 2, 2, -2, -2, 3, -3}), (Fault{8, "S14"}))
      << "the last there is";
  EXPECT_EQ(fault_of({1, -1, -2}), (Fault{2, "S14"})) << "a backward in its stead";
  EXPECT_EQ(fault_of({1, -1, -2.5}), (Fault{kWhole, "S14"})) << "neither";
}

TEST(FirstFault, OfBackwards) {
  EXPECT_EQ(fault_of({1, -1, -1}), (Fault{2, "S15"})) << "the first without a forward";
  EXPECT_EQ(fault_of({1, 1, -1}), (Fault{1, "S15"})) << "the first forward without one";
  EXPECT_EQ(fault_of({2, 1, -1, -1}), (Fault{3, "S15"})) << "two faults that one edit cures";
  EXPECT_EQ(fault_of({3, 2, 1, -1, -1}), (Fault{0, "S15"})) << "and two that it does not";
}

TEST(FirstFault, OfWeightGradients) {
  EXPECT_EQ(fault_of({1, -1, -1.5, -1.5}), (Fault{3, "S16"}));
  EXPECT_EQ(fault_of({1, 1, -1, -1, -1.5}), (Fault{3, "S16"}));
}

TEST(FirstFault, OfTurns) {
  EXPECT_EQ(fault_of({1, -1, -1, 1}), (Fault{2, "S23"}));
  EXPECT_EQ(fault_of({1, -1.5, -1}), (Fault{1, "S24"}));
  EXPECT_EQ(fault_of({-1.5, -1, 1}), (Fault{0, "S24"}));
}

TEST(FirstFaultOfAChain, StandsAtTheFirstReaderOfWhatIsNotThere) {
  const auto of_chain = [](const std::vector<double>& values) {
    return first_fault_of_chain(list_of(values)).value_or(Fault{});
  };
  EXPECT_EQ(of_chain({2, 1, -1, -2}), (Fault{0, "D03"}));
  EXPECT_EQ(of_chain({1, 2, -1, -2}), (Fault{2, "D03"}));
  EXPECT_EQ(of_chain({1, 2, 2, 1, -2, -2, -1, -1}), (Fault{2, "D03"}));
  EXPECT_EQ(of_chain({1, 2, -1, -1}), (Fault{3, "S15"})) << "shape comes first";
  EXPECT_FALSE(first_fault_of_chain(list_of({1, 2, -2, -1})));
  EXPECT_FALSE(first_fault_of_chain(list_of({1, 2, -2, -1, -1.5, -2.5})));
}

}  // namespace
}  // namespace capo::oracle
