#include "testing/faults/faults.h"

#include "core/rules/rule.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "tests/support/check_text.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace capo::testing {
namespace {

using testing_support::check_te;

const ListFault& list_fault(std::string_view name) {
  const auto faults = list_faults();
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [&](const ListFault& fault) { return fault.name == name; });
  return found == faults.end() ? throw std::invalid_argument(std::string(name)) : *found;
}

std::vector<Table> sample_tables(std::size_t count) {
  std::vector<Table> tables;
  for (const Schedule& schedule : sample(sound_named_schedule(), count))
    tables.push_back(table_of(schedule));
  return tables;
}

// The rules that were expected to report the fault, on one subject or another.
template <typename Subject>
std::set<std::string_view> rules_expected(const Fault<Subject>& fault,
                                          const std::vector<Subject>& subjects) {
  std::set<std::string_view> rules;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (const auto broken = fault.apply(subjects[i], i * 13)) rules.insert(broken->rule);
  }
  return rules;
}

template <typename Subject>
void expect_each_rule_meant(std::span<const Fault<Subject>> faults,
                            const std::vector<Subject>& subjects) {
  for (const Fault<Subject>& fault : faults) {
    std::set<std::string_view> named(fault.rules.begin(), fault.rules.end());
    named.erase("");
    EXPECT_EQ(rules_expected(fault, subjects), named) << fault.name;
  }
}

TEST(Faults, ApplyAndMeanEachOfTheirRulesAndNoOther) {
  expect_each_rule_meant(list_faults(), sample(sound_order(), 1000));
  expect_each_rule_meant(order_faults(), sample(sound_named_schedule(), 500));
  expect_each_rule_meant(table_faults(), sample_tables(200));
  expect_each_rule_meant(communication_faults(), sample(sound_communication(), 200));
  expect_each_rule_meant(module_faults(), sample(sound_declared(), 200));
  expect_each_rule_meant(plan_faults(), sample(sound_planned(), 200));
}

TEST(Faults, CoverEveryRuleThatHasACheck) {
  std::set<std::string_view> covered;
  const auto cover = [&](const auto& faults) {
    for (const auto& fault : faults) covered.insert(fault.rules.begin(), fault.rules.end());
  };
  cover(list_faults());
  cover(order_faults());
  cover(table_faults());
  cover(communication_faults());
  cover(plan_faults());
  cover(module_faults());
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr) continue;
    EXPECT_TRUE(covered.contains(rule.id)) << rule.id << " " << rule.name;
  }
}

TEST(Faults, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::size_t count = 0;
  const auto collect = [&](const auto& faults) {
    for (const auto& fault : faults) names.insert(fault.name);
    count += faults.size();
  };
  collect(list_faults());
  collect(order_faults());
  collect(table_faults());
  collect(communication_faults());
  collect(plan_faults());
  collect(module_faults());
  EXPECT_EQ(names.size(), count);
}

TEST(Faults, LeaveTheirSubjectAlone) {
  const TeOrder sound = sample(sound_order(), 1).front();
  const std::string before = sound.text();
  for (const ListFault& fault : list_faults()) (void)fault.apply(sound, 3);
  EXPECT_EQ(sound.text(), before);
}

// One fault is applied by hand, so that this test does not rest on generators alone.
TEST(Faults, OtherChunkMakesTheOrderThatTeAcceptsInSilence) {
  TeOrder sound{.microbatches = 1, .delays = {false, false}};
  sound.layers = {.form = Layers::Form::List, .values = {1, 1}};
  for (const double value : {1.0, 2.0, -2.0, -1.0}) sound.list.entries.push_back({.value = value});
  const auto broken = list_fault("other-chunk").apply(sound, 2);
  ASSERT_TRUE(broken.has_value());
  EXPECT_EQ(broken->subject.text(), "[1, 2, -1, -1]\n");
  EXPECT_EQ(broken->rule, "S15");
  EXPECT_EQ(broken->place, (Place{.rank = 0, .index = 3}));
  const auto findings = check_te(broken->subject.text(), broken->subject.declarations()).findings();
  EXPECT_TRUE(std::find(findings.begin(), findings.end(), "S15@3") != findings.end());
}

TEST(Faults, DoNotApplyWhereThereIsNothingToBreak) {
  TeOrder smallest{.microbatches = 1, .delays = {false}};
  smallest.layers = {.form = Layers::Form::List, .values = {1}};
  for (const double value : {1.0, -1.0}) smallest.list.entries.push_back({.value = value});
  EXPECT_FALSE(list_fault("other-chunk").apply(smallest, 0));
  EXPECT_FALSE(list_fault("absent-chunk").apply(smallest, 0));
  EXPECT_FALSE(list_fault("weight-first").apply(smallest, 0));
}

}  // namespace
}  // namespace capo::testing
